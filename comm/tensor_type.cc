#include "comm/tensor_type.h"

#include "base/check.h"

namespace plait::comm {

DataType TypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DataType::kFloat32;
    case at::kDouble:
      return DataType::kFloat64;
    case at::kBFloat16:
      return DataType::kBFloat16;
    case at::kHalf:
      return DataType::kFloat16;
    case at::kLong:
      return DataType::kInt64;
    case at::kInt:
      return DataType::kInt32;
    case at::kByte:
      return DataType::kUInt8;
    case at::kBool:
      return DataType::kBool;
    default:
      PLAIT_CHECK(false) << "collectives have no type " << type;
  }
  return DataType::kUInt8;
}

}  // namespace plait::comm
