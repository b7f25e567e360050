// ReduceInOrder compared bitwise with a loop over single elements in the same order.
#include "comm/mpi/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "comm/buffer.h"
#include "comm/half_precision.h"
#include "comm/mpi/reduction_families.h"

namespace plait::comm {
namespace {

// One, less than a vector, a tile of the implementation and one more, several tiles and a rest.
constexpr std::int64_t kCounts[] = {1, 7, 2048, 2049, 10'007};

template <typename T>
std::vector<T> ValuesOf(int rank, std::int64_t count) {
  std::vector<T> values(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = std::sin(1.3 * rank + 0.7 * static_cast<double>(i));
    values[i] = std::is_floating_point_v<T> ? static_cast<T>(value) : static_cast<T>(100 + 100 * value);
  }
  return values;
}

template <typename T>
T Apply(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return static_cast<T>(a + b);
    case ReduceOp::kProduct:
      if constexpr (std::is_integral_v<T>) {  // wraps
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      } else {
        return a * b;
      }
    case ReduceOp::kMin:
      return b < a ? b : a;
    case ReduceOp::kMax:
      return a < b ? b : a;
  }
  return a;
}

template <typename T>
std::vector<T> Expected(ReduceOp op, const std::vector<std::vector<T>>& ranks) {
  std::vector<T> result = ranks[0];
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) result[i] = Apply(op, result[i], ranks[rank][i]);
    if (op == ReduceOp::kAverage) result[i] /= static_cast<T>(ranks.size());
  }
  return result;
}

// `in_place`: the source that is also the result; -1 for none.
template <typename T>
void Check(ReductionKernel kernel, DataType type, ReduceOp op, int size, std::int64_t count, int in_place,
           bool with_copy) {
  std::vector<std::vector<T>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(ValuesOf<T>(rank, count));
  const std::vector<T> expected = Expected(op, ranks);
  std::vector<T> out(count + 1, T{77}), copy(count + 1, T{78});
  if (in_place >= 0) std::copy(ranks[in_place].begin(), ranks[in_place].end(), out.begin());
  std::vector<const void*> sources;
  for (int rank = 0; rank < size; ++rank) {
    sources.push_back(rank == in_place ? out.data() : ranks[rank].data());
  }
  kernel(
      op, type,
      {sources, op == ReduceOp::kAverage ? size : 1, count, out.data(), with_copy ? copy.data() : nullptr});
  EXPECT_EQ(0, std::memcmp(out.data(), expected.data(), count * sizeof(T)));
  if (with_copy) {
    EXPECT_EQ(0, std::memcmp(copy.data(), expected.data(), count * sizeof(T)));
  }
  EXPECT_EQ(out[count], T{77});
  EXPECT_EQ(copy[count], T{78});
}

template <typename T>
void CheckAll(DataType type) {
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAverage}) {
    if (op == ReduceOp::kAverage && !IsFloatingPoint(type)) continue;
    for (const int size : {2, 3, 5}) {
      for (const std::int64_t count : kCounts) {
        for (int in_place = -1; in_place < size; ++in_place) {
          SCOPED_TRACE(testing::Message() << Name(op) << " of " << size << " x " << count << " " << Name(type)
                                          << ", in place " << in_place);
          for (const ReductionKernel kernel : {ReducePortable, UsableReduction()}) {
            Check<T>(kernel, type, op, size, count, in_place, /*with_copy=*/in_place % 2 == 0);
          }
        }
      }
    }
  }
}

TEST(ReduceInOrder, Float32) { CheckAll<float>(DataType::kFloat32); }
TEST(ReduceInOrder, Float64) { CheckAll<double>(DataType::kFloat64); }
TEST(ReduceInOrder, Int32) { CheckAll<std::int32_t>(DataType::kInt32); }
TEST(ReduceInOrder, Int64) { CheckAll<std::int64_t>(DataType::kInt64); }
TEST(ReduceInOrder, UInt8) { CheckAll<std::uint8_t>(DataType::kUInt8); }

TEST(ReduceInOrder, BoolIsLogical) {
  const std::vector<std::uint8_t> a = {0, 0, 1, 1}, b = {0, 1, 0, 1};
  const void* sources[] = {a.data(), b.data()};
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kProduct, ReduceOp::kMin}) {
    const bool is_or = op == ReduceOp::kSum || op == ReduceOp::kMax;
    std::vector<std::uint8_t> out(4);
    ReduceInOrder(op, DataType::kBool, sources, 2, 4, out.data(), nullptr);
    EXPECT_EQ(out, is_or ? (std::vector<std::uint8_t>{0, 1, 1, 1}) : (std::vector<std::uint8_t>{0, 0, 0, 1}))
        << Name(op);
  }
}

// The oracle reduces widened values in float32 and narrows once.
TEST(ReduceInOrder, HalfPrecisionInFloat32RoundedOnce) {
  constexpr std::int64_t kCount = 4099;
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax}) {
      std::vector<std::vector<std::uint16_t>> narrow(3, std::vector<std::uint16_t>(kCount));
      std::vector<std::vector<float>> wide(3, std::vector<float>(kCount));
      std::vector<const void*> sources;
      for (int rank = 0; rank < 3; ++rank) {
        Narrow(ValuesOf<float>(rank, kCount).data(), {narrow[rank].data(), kCount, type});
        Widen({narrow[rank].data(), kCount, type}, wide[rank].data());
        sources.push_back(narrow[rank].data());
      }
      std::vector<std::uint16_t> expected(kCount), out(kCount), copy(kCount);
      Narrow(Expected(op, wide).data(), {expected.data(), kCount, type});
      ReduceInOrder(op, type, sources, 3, kCount, out.data(), copy.data());
      EXPECT_EQ(out, expected) << Name(op) << " " << Name(type);
      EXPECT_EQ(copy, expected) << Name(op) << " " << Name(type);
    }
  }
}

}  // namespace
}  // namespace plait::comm
