#include "comm/testing/oracle.h"

#include <algorithm>
#include <cmath>

#include "comm/testing/typed_memory.h"

namespace plait::comm::testing {
namespace {

// The input of rank r at index i: 0, 1, 2 or 3; 0 or 1 for bool. Not for products: 3^8 is not exact in bf16, see
// InputFor.
double InputAt(int rank, std::int64_t i, DataType type) {
  const std::int64_t value = (rank * 7 + i * 3 + (i / 5) * rank) % 4;
  return type == DataType::kBool ? value % 2 : static_cast<double>(value);
}

double Combine(ReduceOp op, double a, double b, DataType type) {
  const bool logical = type == DataType::kBool;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return logical ? std::max(a, b) : a + b;
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
  }
  return 0;
}

}  // namespace

Values Input(int rank, std::int64_t count, DataType type) {
  Values values(count);
  for (std::int64_t i = 0; i < count; ++i) values[i] = InputAt(rank, i, type);
  return values;
}

Values InputFor(ReduceOp op, int rank, std::int64_t count, DataType type) {
  Values values = Input(rank, count, type);
  if (op != ReduceOp::kProduct || type == DataType::kBool) return values;
  for (double& value : values) value = std::exp2(value / 2 >= 1 ? 1 : 0);
  return values;
}

Values Reduced(ReduceOp op, int size, std::int64_t count, DataType type) {
  Values result = InputFor(op, 0, count, type);
  for (int rank = 1; rank < size; ++rank) {
    const Values other = InputFor(op, rank, count, type);
    for (std::int64_t i = 0; i < count; ++i) result[i] = Combine(op, result[i], other[i], type);
  }
  for (double& value : result) {
    if (op == ReduceOp::kAverage)
      value =
          type == DataType::kFloat64 ? value / size : static_cast<float>(value) / static_cast<float>(size);
    if (type == DataType::kUInt8) value = std::fmod(value, 256);
    value = Rounded(value, type);
  }
  return result;
}

Values Gathered(int size, std::int64_t count, DataType type) {
  Values all;
  for (int rank = 0; rank < size; ++rank) {
    const Values part = Input(rank, count, type);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace plait::comm::testing
