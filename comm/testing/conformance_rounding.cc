// Inexact sums: CheckRounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "comm/testing/conformance.h"
#include "comm/testing/oracle.h"
#include "comm/testing/typed_memory.h"

namespace plait::comm::testing {
namespace {

double RandomAt(int rank, std::int64_t i) { return std::sin(1.7 * rank + 0.37 * static_cast<double>(i)); }

double UnitRoundoff(DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return std::exp2(-53);
    case DataType::kFloat32:
      return std::exp2(-24);
    case DataType::kFloat16:
      return std::exp2(-11);
    default:
      return std::exp2(-8);
  }
}

// |computed - exact| <= (size - 1) u_acc sum|x_i| for any order of summation (Higham 2002, eq. 4.4, to first
// order), with u_acc the accumulator's roundoff; then one rounding to the type, relative u_type.
// got[i]: of index begin + i.
void ExpectWithinBound(const Communicator& comm, DataType type, const Values& got, std::int64_t begin) {
  // NCCL adds half precision in its own type.
  const bool in_own_type = comm.device() == Device::kCuda;
  const double u_acc = in_own_type ? UnitRoundoff(type) : std::min(UnitRoundoff(type), std::exp2(-24));
  const double u_type = UnitRoundoff(type);
  for (std::size_t i = 0; i < got.size(); ++i) {
    long double exact = 0, magnitude = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const double value = Rounded(RandomAt(rank, begin + static_cast<std::int64_t>(i)), type);
      exact += value;
      magnitude += std::fabs(value);
    }
    const double sum_error = 1.01 * (comm.size() - 1) * u_acc * static_cast<double>(magnitude);
    const double rounding =
        u_type < std::exp2(-24) * 1.5 ? 0 : u_type * std::fabs(static_cast<double>(exact));
    // f16 is subnormal below 2^-14: its spacing there is 2^-24.
    const double subnormal = type == DataType::kFloat16 ? std::exp2(-25) : 0;
    ASSERT_NEAR(got[i], static_cast<double>(exact), sum_error + 1.01 * rounding + subnormal)
        << Name(type) << " at " << i;
  }
}

}  // namespace

namespace {

// Long enough that all algorithms of comm/mpi have several pieces.
constexpr std::int64_t kPart = 8209;

Values RandomInput(const Communicator& comm) {
  Values input(kPart * comm.size());
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] = RandomAt(comm.rank(), static_cast<std::int64_t>(i));
  }
  return input;
}

void ExpectSameOnAllRanks(const Communicator& comm, Memory& memory, DataType type, const Values& values) {
  TypedMemory mine(memory, DataType::kFloat64, values);
  TypedMemory all(memory, DataType::kFloat64, Values(values.size() * comm.size()));
  comm.AllGather(mine.buffer(), all.buffer());
  const Values everyone = all.Values();
  std::size_t different = 0;
  for (std::size_t i = 0; i < everyone.size(); ++i) different += everyone[i] != values[i % values.size()];
  EXPECT_EQ(different, 0u) << "ranks differ in " << Name(type);
}

void CheckAllReduceRounding(const Communicator& comm, Memory& memory, DataType type, bool async) {
  Values first;
  for (int repetition = 0; repetition < 3; ++repetition) {
    TypedMemory values(memory, type, RandomInput(comm));
    if (async)
      comm.AllReduceAsync(values.buffer()).Wait();
    else
      comm.AllReduce(values.buffer());
    const Values got = values.Values();
    if (repetition == 0) first = got;
    ExpectWithinBound(comm, type, got, 0);
    EXPECT_EQ(got, first) << "not the same bits again";
  }
  ExpectSameOnAllRanks(comm, memory, type, first);
}

void CheckReduceScatterRounding(const Communicator& comm, Memory& memory, DataType type, bool async) {
  Values first;
  for (int repetition = 0; repetition < 3; ++repetition) {
    TypedMemory in(memory, type, RandomInput(comm)), out(memory, type, Values(kPart));
    if (async)
      comm.ReduceScatterAsync(in.buffer(), out.buffer()).Wait();
    else
      comm.ReduceScatter(in.buffer(), out.buffer());
    const Values got = out.Values();
    if (repetition == 0) first = got;
    ExpectWithinBound(comm, type, got, kPart * comm.rank());
    EXPECT_EQ(got, first) << "not the same bits again";
  }
}

}  // namespace

void CheckRounding(const Communicator& comm, Memory& memory) {
  for (const DataType type :
       {DataType::kFloat32, DataType::kFloat64, DataType::kBFloat16, DataType::kFloat16}) {
    for (const bool async : {false, true}) {
      CheckAllReduceRounding(comm, memory, type, async);
      CheckReduceScatterRounding(comm, memory, type, async);
    }
  }
}

}  // namespace plait::comm::testing
