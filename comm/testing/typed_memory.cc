#include "comm/testing/typed_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "comm/half_precision.h"

namespace plait::comm::testing {
namespace {

constexpr std::int64_t kGuardBytes = 16;
constexpr char kGuard = 0x5a;

class Host : public Memory {
 public:
  Device device() const override { return Device::kCpu; }
  void* Allocate(std::int64_t bytes) override { return std::malloc(bytes); }
  void Free(void* data) override { std::free(data); }
  void CopyIn(void* to, const void* from, std::int64_t bytes) override { std::memcpy(to, from, bytes); }
  void CopyOut(void* to, const void* from, std::int64_t bytes) override { std::memcpy(to, from, bytes); }
};

template <typename T>
void StoreAs(double value, char* to) {
  const T typed = static_cast<T>(value);
  std::memcpy(to, &typed, sizeof typed);
}

void Store(double value, DataType type, char* to) {
  switch (type) {
    case DataType::kFloat32:
      return StoreAs<float>(value, to);
    case DataType::kFloat64:
      return StoreAs<double>(value, to);
    case DataType::kInt64:
      return StoreAs<std::int64_t>(value, to);
    case DataType::kInt32:
      return StoreAs<std::int32_t>(value, to);
    case DataType::kUInt8:
      return StoreAs<std::uint8_t>(value, to);
    case DataType::kBool:
      return StoreAs<bool>(value != 0, to);
    case DataType::kBFloat16:
    case DataType::kFloat16: {
      const auto narrow = static_cast<float>(value);
      return Narrow(&narrow, {to, 1, type});
    }
  }
}

template <typename T>
double LoadAs(const char* from) {
  T typed;
  std::memcpy(&typed, from, sizeof typed);
  return static_cast<double>(typed);
}

double Load(DataType type, const char* from) {
  switch (type) {
    case DataType::kFloat32:
      return LoadAs<float>(from);
    case DataType::kFloat64:
      return LoadAs<double>(from);
    case DataType::kInt64:
      return LoadAs<std::int64_t>(from);
    case DataType::kInt32:
      return LoadAs<std::int32_t>(from);
    case DataType::kUInt8:
      return LoadAs<std::uint8_t>(from);
    case DataType::kBool:
      return LoadAs<std::uint8_t>(from);
    case DataType::kBFloat16:
    case DataType::kFloat16: {
      float wide = 0;
      Widen({from, 1, type}, &wide);
      return wide;
    }
  }
  return 0;
}

}  // namespace

Memory& HostMemory() {
  static Host host;
  return host;
}

TypedMemory::TypedMemory(Memory& memory, DataType type, std::vector<double> values)
    : memory_(memory), type_(type), count_(static_cast<std::int64_t>(values.size())) {
  const std::int64_t size = SizeInBytes(type);
  std::vector<char> bytes(count_ * size + kGuardBytes, kGuard);
  for (std::int64_t i = 0; i < count_; ++i) Store(values[i], type, bytes.data() + i * size);
  data_ = memory.Allocate(static_cast<std::int64_t>(bytes.size()));
  memory.CopyIn(data_, bytes.data(), static_cast<std::int64_t>(bytes.size()));
}

TypedMemory::~TypedMemory() { memory_.Free(data_); }

std::vector<double> TypedMemory::Values() const {
  const std::int64_t size = SizeInBytes(type_);
  std::vector<char> bytes(count_ * size + kGuardBytes);
  memory_.CopyOut(bytes.data(), data_, static_cast<std::int64_t>(bytes.size()));
  for (std::int64_t i = 0; i < kGuardBytes; ++i) {
    EXPECT_EQ(bytes[count_ * size + i], kGuard) << "byte " << i << " behind the buffer was overwritten";
  }
  std::vector<double> values(count_);
  for (std::int64_t i = 0; i < count_; ++i) values[i] = Load(type_, bytes.data() + i * size);
  return values;
}

double Rounded(double value, DataType type) {
  char bytes[8];
  Store(value, type, bytes);
  return Load(type, bytes);
}

}  // namespace plait::comm::testing
