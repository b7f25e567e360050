#include "comm/testing/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "comm/testing/oracle.h"
#include "comm/testing/typed_memory.h"

namespace plait::comm::testing {
namespace {

// 1037 is not a multiple of any number of ranks or message limit; 4099 exceeds the eager limit of MPI.
constexpr std::int64_t kCounts[] = {0, 1, 3, 1037, 4099};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kAverage};

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

void CheckWrappingSums(const Communicator& comm, Memory& memory) {
  constexpr DataType kType = DataType::kUInt8;
  const double wrapped = 200 * comm.size() % 256;
  const int root = comm.size() - 1;
  for (const std::int64_t count : {1, 64, 1037, 1 << 18}) {
    SCOPED_TRACE(count);
    TypedMemory all(memory, kType, Values(count, 200));
    comm.AllReduce(all.buffer());
    EXPECT_EQ(all.Values(), Values(count, wrapped));
    TypedMemory in(memory, kType, Values(count * comm.size(), 200)), part(memory, kType, Values(count));
    comm.ReduceScatter(in.buffer(), part.buffer());
    EXPECT_EQ(part.Values(), Values(count, wrapped));
    TypedMemory at_root(memory, kType, Values(comm.rank() == root ? in.buffer().count : 0));
    comm.Reduce(in.buffer(), at_root.buffer(), ReduceOp::kSum, root);
    EXPECT_EQ(at_root.Values(), Values(at_root.buffer().count, wrapped));
  }
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

// One part per rank, of which only this rank's is filled.
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

namespace {

// body(type, count, async, root, in_place)
void ForEachRootedCase(int size, const std::function<void(DataType, std::int64_t, bool, int, bool)>& body) {
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    for (int root = 0; root < size; ++root) {
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(absl::StrCat("root ", root, in_place ? " in place" : ""));
        body(type, count, async, root, in_place);
      }
    }
  });
}

}  // namespace

void CheckGather(const Communicator& comm, Memory& memory) {
  ForEachRootedCase(comm.size(), [&](DataType type, std::int64_t count, bool async, int root, bool in_place) {
    const bool is_root = comm.rank() == root;
    const Values expected = is_root ? Gathered(comm.size(), count, type) : Values();
    TypedMemory in(memory, type, Input(comm.rank(), count, type));
    TypedMemory out(memory, type,
                    in_place && is_root ? OwnPartOf(comm, count, type) : Values(expected.size()));
    const bool here = in_place && is_root;
    const ConstBuffer from = here ? comm::Slice(out.buffer(), count * root, count) : in.buffer();
    if (async)
      comm.GatherAsync(from, out.buffer(), root).Wait();
    else
      comm.Gather(from, out.buffer(), root);
    EXPECT_EQ(out.Values(), expected);
  });
}

void CheckScatter(const Communicator& comm, Memory& memory) {
  ForEachRootedCase(comm.size(), [&](DataType type, std::int64_t count, bool async, int root, bool in_place) {
    const bool is_root = comm.rank() == root, here = in_place && is_root;
    const Values sent = is_root ? Gathered(comm.size(), count, type) : Values();
    TypedMemory in(memory, type, sent);
    TypedMemory out(memory, type, Values(count));
    const Buffer to = here ? comm::Slice(in.buffer(), count * root, count) : out.buffer();
    if (async)
      comm.ScatterAsync(in.buffer(), to, root).Wait();
    else
      comm.Scatter(in.buffer(), to, root);
    EXPECT_EQ(in.Values(), sent);
    EXPECT_EQ(out.Values(), here ? Values(count) : Input(comm.rank(), count, type));
  });
}

namespace {

// `count` values that identify sender and receiver.
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

void CheckSendReceive(const Communicator& comm, Memory& memory) {
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  ForEachCase([&](DataType type, std::int64_t count, bool async) {
    TypedMemory first(memory, type, Input(comm.rank(), count, type));
    TypedMemory second(memory, type, Input(comm.rank() + 5, count + 1, type));
    TypedMemory a(memory, type, Values(count)), b(memory, type, Values(count + 1));
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

}  // namespace plait::comm::testing
