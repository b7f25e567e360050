// Buffers of any type, accessed as doubles. Private to comm/testing.
#ifndef PLAIT_COMM_TESTING_TYPED_MEMORY_H_
#define PLAIT_COMM_TESTING_TYPED_MEMORY_H_

#include <vector>

#include "comm/testing/conformance.h"

namespace plait::comm::testing {

inline constexpr DataType kAllTypes[] = {DataType::kFloat32, DataType::kFloat64, DataType::kBFloat16,
                                         DataType::kFloat16, DataType::kInt64,   DataType::kInt32,
                                         DataType::kUInt8,   DataType::kBool};

// Owns memory for values of one type, with a guard behind the end that operations must not overwrite.
class TypedMemory {
 public:
  TypedMemory(Memory& memory, DataType type, std::vector<double> values);
  ~TypedMemory();
  TypedMemory(const TypedMemory&) = delete;
  TypedMemory& operator=(const TypedMemory&) = delete;

  Buffer buffer() const { return {data_, count_, type_, memory_.device()}; }
  std::vector<double> Values() const;  // fails the test if the guard was overwritten

 private:
  Memory& memory_;
  DataType type_;
  std::int64_t count_;
  void* data_;
};

// `value` rounded to `type`.
double Rounded(double value, DataType type);

}  // namespace plait::comm::testing

#endif  // PLAIT_COMM_TESTING_TYPED_MEMORY_H_
