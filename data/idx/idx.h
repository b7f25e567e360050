// Reader of IDX files, the format of MNIST (LeCun, Cortes, Burges) and of the sets made in its image.
//
//   PLAIT_ASSIGN_OR_RETURN(ImageSplit train, ReadIdxSplit("train-images-idx3-ubyte.gz",
//                                                         "train-labels-idx1-ubyte.gz"));
//
//   offset  type             images                 labels
//        0  uint32 big-end.  2051 = 00 00 08 03     2049 = 00 00 08 01     type (08: uint8), dimensions
//        4  uint32 big-end.  samples                samples
//        8  2 x uint32       rows, columns
//           uint8            samples x rows x columns, or samples
//
// Files may be plain or gzip; their first bytes tell, not their names. Errors, one line each, "FILE: what;
// what to do": NotFound; InvalidArgument where it is no IDX file or one of another type, where it has no
// samples or sizes outside 1..65535, or where images and labels do not match; DataLoss where it is cut short,
// longer than its header says, or its gzip data are damaged. Local.
#ifndef PLAIT_DATA_IDX_IDX_H_
#define PLAIT_DATA_IDX_IDX_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "data/idx/image_set.h"

namespace plait::data {

struct IdxImages {
  std::int64_t samples = 0, rows = 0, columns = 0;
  std::string pixels;  // (samples, rows, columns), unsigned
};

absl::StatusOr<IdxImages> ReadIdxImages(const std::string& path);

// One unsigned byte per label.
absl::StatusOr<std::string> ReadIdxLabels(const std::string& path);

// Both, of the same number of samples.
absl::StatusOr<ImageSplit> ReadIdxSplit(const std::string& images_path, const std::string& labels_path);

}  // namespace plait::data

#endif  // PLAIT_DATA_IDX_IDX_H_
