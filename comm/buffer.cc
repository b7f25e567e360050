#include "comm/buffer.h"

#include "absl/strings/str_cat.h"

namespace plait::comm {

absl::string_view Name(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "f32";
    case DataType::kFloat64:
      return "f64";
    case DataType::kBFloat16:
      return "bf16";
    case DataType::kFloat16:
      return "f16";
    case DataType::kInt64:
      return "i64";
    case DataType::kInt32:
      return "i32";
    case DataType::kUInt8:
      return "u8";
    case DataType::kBool:
      return "bool";
  }
  return "?";
}

std::int64_t SizeInBytes(DataType type) {
  switch (type) {
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kBFloat16:
    case DataType::kFloat16:
      return 2;
    case DataType::kUInt8:
    case DataType::kBool:
      return 1;
  }
  return 0;
}

bool IsFloatingPoint(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64 || type == DataType::kBFloat16 ||
         type == DataType::kFloat16;
}

bool IsHalfPrecision(DataType type) { return type == DataType::kBFloat16 || type == DataType::kFloat16; }

Buffer Slice(Buffer buffer, std::int64_t begin, std::int64_t count) {
  void* data = static_cast<std::byte*>(buffer.data) + begin * SizeInBytes(buffer.type);
  return {count == 0 ? buffer.data : data, count, buffer.type, buffer.device};
}

ConstBuffer Slice(ConstBuffer buffer, std::int64_t begin, std::int64_t count) {
  const void* data = static_cast<const std::byte*>(buffer.data) + begin * SizeInBytes(buffer.type);
  return {count == 0 ? buffer.data : data, count, buffer.type, buffer.device};
}

std::string Describe(ConstBuffer buffer) { return absl::StrCat(Name(buffer.type), "[", buffer.count, "]"); }

}  // namespace plait::comm
