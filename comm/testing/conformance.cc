#include "comm/testing/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "comm/testing/typed_memory.h"

namespace plait::comm::testing {
namespace {

using Values = std::vector<double>;

// 1037 is not a multiple of any number of ranks or message limit; 4099 exceeds the eager limit of MPI.
constexpr std::int64_t kCounts[] = {0, 1, 3, 1037, 4099};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kAverage};

// What rank r holds at index i: 0, 1, 2 or 3, and 0 or 1 for bool. Products of 8 ranks fit into bf16 exactly
// (3^8 does not: see InputFor).
double InputAt(int rank, std::int64_t i, DataType type) {
  const std::int64_t value = (rank * 7 + i * 3 + (i / 5) * rank) % 4;
  return type == DataType::kBool ? value % 2 : static_cast<double>(value);
}

Values Input(int rank, std::int64_t count, DataType type) {
  Values values(count);
  for (std::int64_t i = 0; i < count; ++i) values[i] = InputAt(rank, i, type);
  return values;
}

// Powers of two only: their products are exact in every floating type, and modulo 256 in u8.
Values InputFor(ReduceOp op, int rank, std::int64_t count, DataType type) {
  Values values = Input(rank, count, type);
  if (op != ReduceOp::kProduct || type == DataType::kBool) return values;
  for (double& value : values) value = std::exp2(value / 2 >= 1 ? 1 : 0);
  return values;
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

Values Slice(const Values& values, std::int64_t begin, std::int64_t count) {
  return Values(values.begin() + begin, values.begin() + begin + count);
}

// body(type, count, async)
void ForEachCase(const std::function<void(DataType, std::int64_t, bool)>& body) {
  for (const DataType type : kAllTypes) {
    for (const std::int64_t count : kCounts) {
      for (const bool async : {false, true}) {
        SCOPED_TRACE(absl::StrCat(Name(type), "[", count, "]", async ? " async" : ""));
        body(type, count, async);
      }
    }
  }
}

void ForEachReduction(const std::function<void(DataType, std::int64_t, bool, ReduceOp)>& body) {
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    for (const ReduceOp op : kOps) {
      if (op == ReduceOp::kAverage && !IsFloatingPoint(type)) continue;
      SCOPED_TRACE(Name(op));
      body(type, count, async, op);
    }
  });
}

}  // namespace

void CheckAllReduce(const Communicator& comm, Memory& memory) {
  ForEachReduction([&](DataType type, std::int64_t count, bool async, ReduceOp op) {
    TypedMemory values(memory, type, InputFor(op, comm.rank(), count, type));
    if (async)
      comm.AllReduceAsync(values.buffer(), op).Wait();
    else
      comm.AllReduce(values.buffer(), op);
    EXPECT_EQ(values.Values(), Reduced(op, comm.size(), count, type));
  });
}

void CheckReduce(const Communicator& comm, Memory& memory) {
  ForEachReduction([&](DataType type, std::int64_t count, bool async, ReduceOp op) {
    const int root = static_cast<int>(count % comm.size());
    for (const bool in_place : {false, true}) {
      const Values input = InputFor(op, comm.rank(), count, type);
      TypedMemory in(memory, type, input);
      TypedMemory out(memory, type, Values(comm.rank() == root ? count : 0));
      const bool here = in_place && comm.rank() == root;
      const Buffer to = here ? in.buffer() : out.buffer();
      if (async)
        comm.ReduceAsync(in.buffer(), to, op, root).Wait();
      else
        comm.Reduce(in.buffer(), to, op, root);
      const Values reduced = comm.rank() == root ? Reduced(op, comm.size(), count, type) : Values();
      EXPECT_EQ(here ? Values() : out.Values(), here ? Values() : reduced);
      EXPECT_EQ(in.Values(), here ? reduced : input);
    }
  });
}

void CheckReduceScatter(const Communicator& comm, Memory& memory) {
  ForEachReduction([&](DataType type, std::int64_t count, bool async, ReduceOp op) {
    const Values expected =
        comm::testing::Slice(Reduced(op, comm.size(), count * comm.size(), type), count * comm.rank(), count);
    for (const bool in_place : {false, true}) {
      const Values input = InputFor(op, comm.rank(), count * comm.size(), type);
      TypedMemory in(memory, type, input);
      TypedMemory out(memory, type, Values(count));
      const Buffer part = comm::Slice(in.buffer(), count * comm.rank(), count);
      const Buffer to = in_place ? part : out.buffer();
      if (async)
        comm.ReduceScatterAsync(in.buffer(), to, op).Wait();
      else
        comm.ReduceScatter(in.buffer(), to, op);
      Values left = input;
      if (in_place) std::copy(expected.begin(), expected.end(), left.begin() + count * comm.rank());
      EXPECT_EQ(in.Values(), left);  // the parts of others stay as they were
      EXPECT_EQ(out.Values(), in_place ? Values(count) : expected);
    }
  });
}

void CheckBroadcast(const Communicator& comm, Memory& memory) {
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    for (int root = 0; root < comm.size(); ++root) {
      TypedMemory values(memory, type, Input(comm.rank(), count, type));
      if (async)
        comm.BroadcastAsync(values.buffer(), root).Wait();
      else
        comm.Broadcast(values.buffer(), root);
      EXPECT_EQ(values.Values(), Input(root, count, type));
    }
  });
}

namespace {

Values Gathered(int size, std::int64_t count, DataType type) {
  Values all;
  for (int rank = 0; rank < size; ++rank) {
    const Values part = Input(rank, count, type);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// `size` parts of which the own one is filled.
Values OwnPartOf(const Communicator& comm, std::int64_t count, DataType type) {
  Values all(count * comm.size());
  const Values part = Input(comm.rank(), count, type);
  std::copy(part.begin(), part.end(), all.begin() + count * comm.rank());
  return all;
}

}  // namespace

void CheckAllGather(const Communicator& comm, Memory& memory) {
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    for (const bool in_place : {false, true}) {
      TypedMemory in(memory, type, Input(comm.rank(), count, type));
      TypedMemory out(memory, type, in_place ? OwnPartOf(comm, count, type) : Values(count * comm.size()));
      const ConstBuffer from = in_place ? comm::Slice(out.buffer(), count * comm.rank(), count) : in.buffer();
      if (async)
        comm.AllGatherAsync(from, out.buffer()).Wait();
      else
        comm.AllGather(from, out.buffer());
      EXPECT_EQ(out.Values(), Gathered(comm.size(), count, type));
    }
  });
}

void CheckGather(const Communicator& comm, Memory& memory) {
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    for (int root = 0; root < comm.size(); ++root) {
      const bool is_root = comm.rank() == root;
      const bool in_place = is_root && count % 2 == 1;
      TypedMemory in(memory, type, Input(comm.rank(), count, type));
      TypedMemory out(memory, type, is_root ? OwnPartOf(comm, count, type) : Values());
      const ConstBuffer from = in_place ? comm::Slice(out.buffer(), count * root, count) : in.buffer();
      if (async)
        comm.GatherAsync(from, out.buffer(), root).Wait();
      else
        comm.Gather(from, out.buffer(), root);
      EXPECT_EQ(out.Values(), is_root ? Gathered(comm.size(), count, type) : Values());
    }
  });
}

void CheckScatter(const Communicator& comm, Memory& memory) {
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    for (int root = 0; root < comm.size(); ++root) {
      const bool is_root = comm.rank() == root;
      const bool in_place = is_root && count % 2 == 1;
      TypedMemory in(memory, type, is_root ? Gathered(comm.size(), count, type) : Values());
      TypedMemory out(memory, type, Values(count));
      const Buffer own = is_root ? comm::Slice(in.buffer(), count * root, count) : out.buffer();
      const Buffer to = in_place ? own : out.buffer();
      if (async)
        comm.ScatterAsync(in.buffer(), to, root).Wait();
      else
        comm.Scatter(in.buffer(), to, root);
      EXPECT_EQ(in.Values(), is_root ? Gathered(comm.size(), count, type) : Values());
      EXPECT_EQ(out.Values(), in_place ? Values(count) : Input(comm.rank(), count, type));
    }
  });
}

namespace {

// What `from` sends to `to`: `count` values that say so.
Values Letter(int from, int to, std::int64_t count, DataType type) {
  Values values(count);
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = Rounded((from * 8 + to + i) % (type == DataType::kBool ? 2 : 64), type);
  return values;
}

template <typename CountOf>
Values Letters(int size, CountOf letter_of) {
  Values all;
  for (int peer = 0; peer < size; ++peer) {
    const Values letter = letter_of(peer);
    all.insert(all.end(), letter.begin(), letter.end());
  }
  return all;
}

}  // namespace

void CheckAllToAll(const Communicator& comm, Memory& memory) {
  const int me = comm.rank();
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    const Values sent = Letters(comm.size(), [&](int peer) { return Letter(me, peer, count, type); });
    const Values expected = Letters(comm.size(), [&](int peer) { return Letter(peer, me, count, type); });
    for (const bool in_place : {false, true}) {
      TypedMemory in(memory, type, sent);
      TypedMemory out(memory, type, Values(sent.size()));
      const Buffer to = in_place ? in.buffer() : out.buffer();
      if (async)
        comm.AllToAllAsync(in.buffer(), to).Wait();
      else
        comm.AllToAll(in.buffer(), to);
      EXPECT_EQ((in_place ? in : out).Values(), expected);
    }
  });
}

void CheckAllToAllV(const Communicator& comm, Memory& memory) {
  const int me = comm.rank(), size = comm.size();
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    // Uneven, and nothing at all between some pairs.
    const auto length = [&](int from, int to) { return (from + 2 * to) % 3 * count; };
    std::vector<std::int64_t> send_counts(size), receive_counts(size);
    for (int peer = 0; peer < size; ++peer) {
      send_counts[peer] = length(me, peer);
      receive_counts[peer] = length(peer, me);
    }
    TypedMemory in(memory, type, Letters(size, [&](int p) { return Letter(me, p, length(me, p), type); }));
    const Values expected = Letters(size, [&](int p) { return Letter(p, me, length(p, me), type); });
    TypedMemory out(memory, type, Values(expected.size()));
    if (async)
      comm.AllToAllVAsync(in.buffer(), send_counts, out.buffer(), receive_counts).Wait();
    else
      comm.AllToAllV(in.buffer(), send_counts, out.buffer(), receive_counts);
    EXPECT_EQ(out.Values(), expected);
  });
}

namespace {

// Without tags, and with nobody to send to in a group of one.
void CheckRing(const Communicator& comm, const TypedMemory& mine, const TypedMemory& theirs, int previous,
               int next, std::int64_t count, DataType type, bool async) {
  if (comm.size() == 1) return;
  Work send = comm.SendAsync(mine.buffer(), next, 0);
  if (async)
    comm.ReceiveAsync(theirs.buffer(), previous, 0).Wait();
  else
    comm.Receive(theirs.buffer(), previous, 0);
  send.Wait();
  EXPECT_EQ(theirs.Values(), Input(previous, count, type));
}

}  // namespace

void CheckSendReceive(const Communicator& comm, Memory& memory) {
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    TypedMemory first(memory, type, Input(comm.rank(), count, type));
    TypedMemory second(memory, type, Input(comm.rank() + 5, count + 1, type));
    TypedMemory a(memory, type, Values(count)), b(memory, type, Values(count + 1));
    if (memory.device() == Device::kCuda)
      return CheckRing(comm, first, a, previous, next, count, type, async);
    // The tags tell the messages apart: they are received in the other order.
    Work sends[] = {comm.SendAsync(first.buffer(), next, 1), comm.SendAsync(second.buffer(), next, 2)};
    if (async) {
      Work receives[] = {comm.ReceiveAsync(b.buffer(), previous, 2),
                         comm.ReceiveAsync(a.buffer(), previous, 1)};
      for (Work& receive : receives) receive.Wait();
    } else {
      comm.Receive(b.buffer(), previous, 2);
      comm.Receive(a.buffer(), previous, 1);
    }
    for (Work& send : sends) send.Wait();
    EXPECT_EQ(a.Values(), Input(previous, count, type));
    EXPECT_EQ(b.Values(), Input(previous + 5, count + 1, type));
  });
}

void CheckSplit(const Communicator& comm, Memory& memory) {
  // Even and odd ranks, in reverse order.
  const Communicator half = comm.Split(comm.rank() % 2, -comm.rank(), "half");
  const int expected_size = (comm.size() + 1 - comm.rank() % 2) / 2;
  ASSERT_EQ(half.size(), expected_size);
  EXPECT_EQ(half.rank(), expected_size - 1 - comm.rank() / 2);
  EXPECT_EQ(half.name(), "half");
  TypedMemory value(memory, DataType::kInt64, {static_cast<double>(comm.rank())});
  half.AllReduce(value.buffer());
  double sum = 0;
  for (int rank = comm.rank() % 2; rank < comm.size(); rank += 2) sum += rank;
  EXPECT_EQ(value.Values(), Values{sum});
  const Communicator alone = comm.Split(comm.rank() == 0 ? 0 : -1, 0, "alone");
  EXPECT_EQ(alone.size(), 1);
  comm.Barrier();
  comm.BarrierAsync().Wait();
}

void CheckOverlappingWork(const Communicator& comm, Memory& memory) {
  constexpr std::int64_t kCount = 1037;
  constexpr DataType kType = DataType::kFloat64;
  TypedMemory sum(memory, kType, Input(comm.rank(), kCount, kType));
  TypedMemory part(memory, kType, Input(comm.rank(), kCount, kType));
  TypedMemory all(memory, kType, Values(kCount * comm.size()));
  TypedMemory root_values(memory, kType, Input(comm.rank(), kCount, kType));
  Work reduce = comm.AllReduceAsync(sum.buffer());
  Work gather = comm.AllGatherAsync(part.buffer(), all.buffer());
  Work broadcast = comm.BroadcastAsync(root_values.buffer(), comm.size() - 1);
  while (!broadcast.Test()) {
  }
  EXPECT_FALSE(broadcast.valid());
  gather.Wait();
  reduce.Wait();
  EXPECT_EQ(sum.Values(), Reduced(ReduceOp::kSum, comm.size(), kCount, kType));
  EXPECT_EQ(all.Values(), Gathered(comm.size(), kCount, kType));
  EXPECT_EQ(root_values.Values(), Input(comm.size() - 1, kCount, kType));
}

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
void ExpectWithinBound(const Communicator& comm, DataType type, const Values& got) {
  const double u_acc = std::min(UnitRoundoff(type), std::exp2(-24));
  const double u_type = UnitRoundoff(type);
  for (std::size_t i = 0; i < got.size(); ++i) {
    long double exact = 0, magnitude = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const double value = Rounded(RandomAt(rank, static_cast<std::int64_t>(i)), type);
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

void CheckRounding(const Communicator& comm, Memory& memory) {
  for (const DataType type :
       {DataType::kFloat32, DataType::kFloat64, DataType::kBFloat16, DataType::kFloat16}) {
    Values input(4099), first;
    for (std::size_t i = 0; i < input.size(); ++i)
      input[i] = RandomAt(comm.rank(), static_cast<std::int64_t>(i));
    for (int repetition = 0; repetition < 3; ++repetition) {
      TypedMemory values(memory, type, input);
      comm.AllReduce(values.buffer());
      const Values got = values.Values();
      if (repetition == 0) first = got;
      ExpectWithinBound(comm, type, got);
      EXPECT_EQ(got, first) << "not the same bits again";
    }
    TypedMemory mine(memory, DataType::kFloat64, first),
        all(memory, DataType::kFloat64, Values(first.size() * comm.size()));
    comm.AllGather(mine.buffer(), all.buffer());
    const Values everyone = all.Values();
    for (std::size_t i = 0; i < everyone.size(); ++i) {
      ASSERT_EQ(everyone[i], first[i % first.size()]) << "ranks differ in " << Name(type);
    }
  }
}

}  // namespace plait::comm::testing
