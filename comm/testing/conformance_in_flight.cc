// Several operations in flight at once, and long ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/testing/conformance.h"
#include "comm/testing/oracle.h"
#include "comm/testing/typed_memory.h"

namespace plait::comm::testing {

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

// An operation in flight, its buffers, and its expected result.
struct UnderWay {
  std::string name;
  std::unique_ptr<TypedMemory> in, out;
  Values expected;
  Work work = {};
};

UnderWay Prepare(Operation operation, Memory& memory, DataType type, Values in, Values out, Values expected) {
  return {absl::StrCat(Name(operation), " of ", in.size(), " ", Name(type)),
          std::make_unique<TypedMemory>(memory, type, std::move(in)),
          std::make_unique<TypedMemory>(memory, type, std::move(out)), std::move(expected)};
}

UnderWay StartAllReduce(const Communicator& comm, Memory& memory, DataType type, std::int64_t count,
                        ReduceOp op) {
  UnderWay o = Prepare(Operation::kAllReduce, memory, type, {}, InputFor(op, comm.rank(), count, type),
                       Reduced(op, comm.size(), count, type));
  o.work = comm.AllReduceAsync(o.out->buffer(), op);
  return o;
}

UnderWay StartReduceScatter(const Communicator& comm, Memory& memory, DataType type, std::int64_t count,
                            ReduceOp op) {
  const std::int64_t all = count * comm.size();
  const Values reduced = Reduced(op, comm.size(), all, type);
  const auto part = reduced.begin() + count * comm.rank();
  UnderWay o = Prepare(Operation::kReduceScatter, memory, type, InputFor(op, comm.rank(), all, type),
                       Values(count), Values(part, part + count));
  o.work = comm.ReduceScatterAsync(o.in->buffer(), o.out->buffer(), op);
  return o;
}

UnderWay StartAllGather(const Communicator& comm, Memory& memory, DataType type, std::int64_t count) {
  UnderWay o = Prepare(Operation::kAllGather, memory, type, Input(comm.rank(), count, type),
                       Values(count * comm.size()), Gathered(comm.size(), count, type));
  o.work = comm.AllGatherAsync(o.in->buffer(), o.out->buffer());
  return o;
}

UnderWay StartBroadcast(const Communicator& comm, Memory& memory, DataType type, std::int64_t count) {
  const int root = comm.size() - 1;
  UnderWay o = Prepare(Operation::kBroadcast, memory, type, {}, Input(comm.rank(), count, type),
                       Input(root, count, type));
  o.work = comm.BroadcastAsync(o.out->buffer(), root);
  return o;
}

void Finish(UnderWay& o) {
  o.work.Wait();
  EXPECT_EQ(o.out->Values(), o.expected) << o.name;
}

std::vector<UnderWay> StartMany(const Communicator& comm, const Communicator& half, Memory& memory) {
  constexpr std::int64_t kCounts[] = {20011, 5, 0, 1037, 6007};
  std::vector<UnderWay> all;
  for (int i = 0; i < 30; ++i) {
    const Communicator& ranks = i % 3 == 1 ? half : comm;
    const DataType type = kAllTypes[i % 4];  // the floating ones
    const std::int64_t count = kCounts[i % 5];
    switch ((i / 2) % 4) {
      case 0:
        all.push_back(StartAllReduce(ranks, memory, type, count, ReduceOp::kAverage));
        break;
      case 1:
        all.push_back(StartReduceScatter(ranks, memory, type, count, ReduceOp::kSum));
        break;
      case 2:
        all.push_back(StartAllGather(ranks, memory, type, count));
        break;
      default:
        all.push_back(StartBroadcast(ranks, memory, type, count));
    }
  }
  return all;
}

// Blocks while other operations are in flight.
void PassRound(const Communicator& comm, Memory& memory) {
  if (comm.size() == 1) return;
  constexpr std::int64_t kCount = 30011;
  const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  TypedMemory mine(memory, DataType::kFloat32, Input(comm.rank(), kCount, DataType::kFloat32));
  TypedMemory theirs(memory, DataType::kFloat32, Values(kCount));
  Work send = comm.SendAsync(mine.buffer(), next, 0);
  comm.Receive(theirs.buffer(), before, 0);
  send.Wait();
  EXPECT_EQ(theirs.Values(), Input(before, kCount, DataType::kFloat32));
}

}  // namespace

void CheckMessagesOfOneTag(const Communicator& comm, Memory& memory) {
  const DataType type = DataType::kFloat32;
  const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  // Alternates between long and short ones; some are sent before the receive is posted, some afterwards.
  constexpr std::int64_t kCounts[] = {3, 40'003, 4, 5, 100'003, 1};
  std::vector<UnderWay> received;
  std::vector<Work> sends;
  for (const std::int64_t count : kCounts) {
    const int shift = static_cast<int>(count % 7);
    received.push_back(Prepare(Operation::kReceive, memory, type, Input(comm.rank() + shift, count, type),
                               Values(count), Input(before + shift, count, type)));
    const auto send = [&] { sends.push_back(comm.SendAsync(received.back().in->buffer(), next, 9)); };
    if (count < 5) send();
    received.back().work = comm.ReceiveAsync(received.back().out->buffer(), before, 9);
    if (count >= 5) send();
  }
  std::reverse(received.begin(), received.end());
  for (UnderWay& o : received) Finish(o);
  for (Work& send : sends) send.Wait();
}

void CheckOrdersOfWaiting(const Communicator& comm, Memory& memory) {
  const Communicator half = comm.Split(comm.rank() % 2, comm.rank(), "half_in_flight");
  for (int round = 0; round < 3; ++round) {
    std::vector<UnderWay> all = StartMany(comm, half, memory);
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + (comm.rank() * 7 + round) % 30, order.end());
    if (comm.rank() % 2 == 1) std::reverse(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i == order.size() / 2) PassRound(comm, memory);
      if (round > 0 && i % 3 == 0) {  // Test advances all operations: the first round must not need it
        while (!all[order[i]].work.Test()) {
        }
      }
      Finish(all[order[i]]);
    }
  }
}

void CheckBlockingBesideWork(const Communicator& comm, Memory& memory) {
  // In shared memory, more rows than slots: it needs calls of all ranks to complete.
  constexpr std::int64_t kCount = 3'000'011;
  const auto split = [&] { EXPECT_EQ(comm.Split(0, comm.rank(), "again").size(), comm.size()); };
  const auto broadcast = [&] {
    TypedMemory word(memory, DataType::kInt32, {comm.rank() == 0 ? 42.0 : 0.0});
    comm.Broadcast(word.buffer(), 0);
    EXPECT_EQ(word.Values(), Values{42.0});
  };
  const auto exchange = [&] {
    const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
    TypedMemory sent(memory, DataType::kInt32, {static_cast<double>(comm.rank())});
    TypedMemory received(memory, DataType::kInt32, {-1.0});
    Work send = comm.SendAsync(sent.buffer(), next, 3);
    comm.Receive(received.buffer(), before, 3);
    send.Wait();
    EXPECT_EQ(received.Values(), Values{static_cast<double>(before)});
  };
  for (const std::function<void()>& call :
       {std::function<void()>(split), std::function<void()>(broadcast), std::function<void()>(exchange)}) {
    for (const int first : {0, 1}) {
      TypedMemory values(memory, DataType::kFloat32, Values(kCount, 1.0));
      Work work = comm.AllReduceAsync(values.buffer());
      if (comm.rank() % 2 == first) call();
      work.Wait();
      if (comm.rank() % 2 != first) call();
      EXPECT_EQ(values.Values(), Values(kCount, comm.size()));
    }
  }
}

void CheckLongBuffers(const Communicator& comm, Memory& memory) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kInt64}) {
    const ReduceOp mean_or_sum = IsFloatingPoint(type) ? ReduceOp::kAverage : ReduceOp::kSum;
    UnderWay reduce = StartAllReduce(comm, memory, type, 300'007, mean_or_sum);
    UnderWay maximum = StartReduceScatter(comm, memory, type, 100'003, ReduceOp::kMax);
    UnderWay gather = StartAllGather(comm, memory, type, 100'003);
    UnderWay scatter = StartReduceScatter(comm, memory, type, 100'003, mean_or_sum);
    for (UnderWay* o : {&scatter, &reduce, &maximum, &gather}) Finish(*o);
  }
}

}  // namespace plait::comm::testing
