// Reductions of several sources, tile by tile. Included by one .cc per instruction set (comm/mpi/reduction_families.h).
#ifndef PLAIT_COMM_MPI_REDUCTION_LOOPS_H_
#define PLAIT_COMM_MPI_REDUCTION_LOOPS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/vector_loops.h"
#include "comm/half_precision.h"
#include "comm/mpi/reduction_families.h"
#include "comm/operation.h"

namespace plait::comm {
namespace {

constexpr std::int64_t kTile = 2048;  // elements: partial results stay in the L1 cache

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {  // wraps
      using Bits = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
    } else {
      return a + b;
    }
  }
};
struct Product {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      // 64 bits: narrower unsigned types would be promoted to int, whose products overflow.
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Or {
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const { return (a | b) != 0; }
};
struct And {
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const { return (a != 0) & (b != 0); }
};

// Arrays that overlap are equal, so the loop's iterations are independent.
template <typename T, typename Op>
void Combine(const T* a, const T* b, T* out, std::int64_t n, Op op) {
  PLAIT_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) out[i] = op(a[i], b[i]);
}

template <typename T, typename Op>
void CombineTo(const T* a, const T* b, T* out, T* copy, std::int64_t n, Op op) {
  Combine(a, b, out, n, op);
  // Other cores have read the old contents of `copy`: separate stores take twice as long as memcpy, which does not
  // fetch the cache lines that it overwrites.
  if (copy != nullptr) std::memcpy(copy, out, n * sizeof(T));
}

template <typename T, typename Op>
void CombineLast(const T* a, const T* b, int divisor, T* out, T* copy, std::int64_t n, Op op) {
  if (divisor == 1) return CombineTo(a, b, out, copy, n, op);
  if constexpr (std::is_floating_point_v<T>) {
    const T ranks = static_cast<T>(divisor), inverse = 1 / ranks;
    // For a power of two, multiplying by the inverse is exact and faster than dividing.
    if (std::has_single_bit(static_cast<unsigned>(divisor))) {
      CombineTo(a, b, out, copy, n, [=](T x, T y) { return op(x, y) * inverse; });
    } else {
      CombineTo(a, b, out, copy, n, [=](T x, T y) { return op(x, y) / ranks; });
    }
  }
}

template <typename T, typename Op>
void ReduceAs(const ReductionTask& task, Op op) {
  const std::size_t last = task.sources.size() - 1;
  T partial[kTile];
  for (std::int64_t begin = 0; begin < task.count; begin += kTile) {
    const std::int64_t n = std::min(kTile, task.count - begin);
    const auto source = [&](std::size_t index) { return static_cast<const T*>(task.sources[index]) + begin; };
    const T* left = source(0);
    for (std::size_t i = 1; i < last; ++i) {
      Combine(left, source(i), partial, n, op);
      left = partial;
    }
    T* copy = task.copy == nullptr ? nullptr : static_cast<T*>(task.copy) + begin;
    CombineLast(left, source(last), task.divisor, static_cast<T*>(task.out) + begin, copy, n, op);
  }
}

template <typename Op>
void ReduceHalf(const ReductionTask& task, DataType type, Op op) {
  float partial[kTile], next[kTile];
  const std::size_t last = task.sources.size() - 1;
  for (std::int64_t begin = 0; begin < task.count; begin += kTile) {
    const std::int64_t n = std::min(kTile, task.count - begin);
    const auto widen = [&](std::size_t index, float* to) {
      Widen({static_cast<const std::uint16_t*>(task.sources[index]) + begin, n, type}, to);
    };
    widen(0, partial);
    for (std::size_t i = 1; i <= last; ++i) {
      widen(i, next);
      CombineLast(partial, next, i == last ? task.divisor : 1, partial, static_cast<float*>(nullptr), n, op);
    }
    auto* out = static_cast<std::uint16_t*>(task.out) + begin;
    Narrow(partial, {out, n, type});
    if (task.copy != nullptr) {
      std::memcpy(static_cast<std::uint16_t*>(task.copy) + begin, out, n * sizeof(std::uint16_t));
    }
  }
}

template <typename Op>
void ReduceTyped(const ReductionTask& task, DataType type, Op op) {
  switch (type) {
    case DataType::kFloat32:
      return ReduceAs<float>(task, op);
    case DataType::kFloat64:
      return ReduceAs<double>(task, op);
    case DataType::kBFloat16:
    case DataType::kFloat16:
      return ReduceHalf(task, type, op);
    case DataType::kInt64:
      return ReduceAs<std::int64_t>(task, op);
    case DataType::kInt32:
      return ReduceAs<std::int32_t>(task, op);
    case DataType::kUInt8:
    case DataType::kBool:
      return ReduceAs<std::uint8_t>(task, op);
  }
}

void Reduce(ReduceOp op, DataType type, const ReductionTask& task) {
  const bool logical = type == DataType::kBool;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return logical ? ReduceAs<std::uint8_t>(task, Or{}) : ReduceTyped(task, type, Sum{});
    case ReduceOp::kProduct:
      return logical ? ReduceAs<std::uint8_t>(task, And{}) : ReduceTyped(task, type, Product{});
    case ReduceOp::kMin:
      return logical ? ReduceAs<std::uint8_t>(task, And{}) : ReduceTyped(task, type, Min{});
    case ReduceOp::kMax:
      return logical ? ReduceAs<std::uint8_t>(task, Or{}) : ReduceTyped(task, type, Max{});
  }
}

}  // namespace
}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_REDUCTION_LOOPS_H_
