#include "comm/tensor_type.h"

#include <optional>

#include "base/check.h"

namespace plait::comm {
namespace {

std::optional<DataType> FindType(at::ScalarType type) {
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
      return std::nullopt;
  }
}

}  // namespace

DataType TypeOf(at::ScalarType type) {
  const std::optional<DataType> found = FindType(type);
  PLAIT_CHECK(found.has_value()) << "collectives have no type " << type;
  return *found;
}

bool HasDataType(at::ScalarType type) { return FindType(type).has_value(); }

}  // namespace plait::comm
