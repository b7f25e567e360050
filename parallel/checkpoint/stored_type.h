// How element types stand in checkpoints: their names in the index, and their types in HDF5 files.
//
// float32, float64, int64, int32 and uint8 are HDF5's own, little-endian. float16 is IEEE's 16-bit number,
// which HDF5 can describe though it has no name for it; h5py shows float16. bfloat16 is described likewise (1
// sign, 8 exponent and 7 mantissa bits, bias 127), and HDF5 converts it when it is read as float32, which
// h5py does by itself. bool is the enumeration FALSE, TRUE of one byte that h5py shows as bool. Another type
// is a programming error.
#ifndef PLAIT_PARALLEL_CHECKPOINT_STORED_TYPE_H_
#define PLAIT_PARALLEL_CHECKPOINT_STORED_TYPE_H_

#include <c10/core/ScalarType.h>

#include <optional>

#include "absl/strings/string_view.h"
#include "data/hdf5/handle.h"

namespace plait::parallel {

// "float32", "bfloat16", ...
absl::string_view TypeName(at::ScalarType type);
std::optional<at::ScalarType> TypeNamed(absl::string_view name);

data::Handle StoredType(at::ScalarType type);

// Fills what no file gives: every bit set, which is NaN for floating-point numbers of all widths and -1 or
// 255 for integers, so that a lost shard does not look like zeros. FALSE for bool.
void SetFillOfLostElements(hid_t creation_list, at::ScalarType type);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_STORED_TYPE_H_
