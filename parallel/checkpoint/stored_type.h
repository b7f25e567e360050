// How element types are stored in checkpoints: their names in the index, and their types in HDF5 files.
//
// float32, float64, int64, int32 and uint8 are HDF5's predefined little-endian types. float16 is a custom HDF5 float
// type (IEEE 754 binary16), which h5py reads as float16. bfloat16 is another (1 sign, 8 exponent and 7 mantissa bits,
// bias 127), which HDF5 converts to float32; h5py does so by default. bool is a one-byte enumeration FALSE, TRUE, which
// h5py reads as bool. Any other type is a programming error.
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

// Sets the fill value, which is read for elements whose file is missing, to all bits set: NaN for floating-point
// types, -1 or 255 for integers, so that a lost shard does not look like zeros. bool keeps FALSE.
void SetFillOfLostElements(hid_t creation_list, at::ScalarType type);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_STORED_TYPE_H_
