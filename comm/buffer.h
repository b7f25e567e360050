// Typed memory, on the host or on a device: the arguments of collectives. Independent of LibTorch.
#ifndef PLAIT_COMM_BUFFER_H_
#define PLAIT_COMM_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plait::comm {

enum class DataType : std::uint8_t { kFloat32, kFloat64, kBFloat16, kFloat16, kInt64, kInt32, kUInt8, kBool };

enum class Device : std::uint8_t { kCpu, kCuda };

// Short name as the hang report prints it: "f32", "bf16", "i64", ...
absl::string_view Name(DataType type);
std::int64_t SizeInBytes(DataType type);
bool IsFloatingPoint(DataType type);
bool IsHalfPrecision(DataType type);  // bf16 and f16, which are reduced in f32

template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::kFloat32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::kFloat64;
};
template <>
struct DataTypeOf<std::int64_t> {
  static constexpr DataType value = DataType::kInt64;
};
template <>
struct DataTypeOf<std::int32_t> {
  static constexpr DataType value = DataType::kInt32;
};
template <>
struct DataTypeOf<std::uint8_t> {
  static constexpr DataType value = DataType::kUInt8;
};
template <>
struct DataTypeOf<std::byte> {
  static constexpr DataType value = DataType::kUInt8;
};
template <>
struct DataTypeOf<bool> {
  static constexpr DataType value = DataType::kBool;
};

// `count` contiguous elements, not owned. An empty buffer may have a null address.
struct ConstBuffer {
  const void* data = nullptr;
  std::int64_t count = 0;
  DataType type = DataType::kUInt8;
  Device device = Device::kCpu;

  std::int64_t bytes() const { return count * SizeInBytes(type); }
};

struct Buffer {
  void* data = nullptr;
  std::int64_t count = 0;
  DataType type = DataType::kUInt8;
  Device device = Device::kCpu;

  std::int64_t bytes() const { return count * SizeInBytes(type); }
  operator ConstBuffer() const { return {data, count, type, device}; }
};

// Elements [begin, begin + count) of `buffer`.
Buffer Slice(Buffer buffer, std::int64_t begin, std::int64_t count);
ConstBuffer Slice(ConstBuffer buffer, std::int64_t begin, std::int64_t count);
// As the hang report prints it: "f32[180736]".
std::string Describe(ConstBuffer buffer);

template <typename T>
Buffer BufferOf(absl::Span<T> values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), DataTypeOf<T>::value};
}
template <typename T>
ConstBuffer ConstBufferOf(absl::Span<const T> values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), DataTypeOf<T>::value};
}

}  // namespace plait::comm

#endif  // PLAIT_COMM_BUFFER_H_
