// Reader of IDX files, the format of MNIST (LeCun, Cortes, Burges) and of data sets modelled on it.
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
// Files may be plain or gzip, which is detected from their first bytes. Errors, one line each, "FILE: what;
// what to do": NotFound; InvalidArgument if the file is not IDX or has another type, no samples or sizes outside
// 1..65535, or if images and labels differ in number; DataLoss if it is truncated, longer than its header says, or
// its gzip data are damaged. Local.
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

// Reads images and their labels.
absl::StatusOr<ImageSplit> ReadIdxSplit(const std::string& images_path, const std::string& labels_path);

}  // namespace plait::data

#endif  // PLAIT_DATA_IDX_IDX_H_
