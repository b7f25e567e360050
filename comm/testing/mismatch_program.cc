// Mismatched calls: mismatch_program CASE [FLAG...], run under mpirun by mismatch_test.sh. Without arguments it lists
// its cases. The timeouts are long, so that only the transport's own checks can end the job.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "comm/session_main.h"
#include "comm/testing/session_flags.h"

namespace {

using plait::comm::BufferOf;
using plait::comm::Communicator;
using plait::comm::ConstBufferOf;
using plait::comm::Operation;
using plait::comm::ReduceOp;

constexpr int kOddRank = 1;
constexpr std::int64_t kLong = 1'000'000;

template <typename T>
void AllReduce(const Communicator& c, std::int64_t count, ReduceOp op = ReduceOp::kSum) {
  std::vector<T> values(count, T{1});
  c.AllReduce(BufferOf(absl::MakeSpan(values)), op);
  std::printf("rank %d computed %g\n", c.rank(), count > 0 ? static_cast<double>(values.back()) : 0.0);
}

void AllReduceAsync(const Communicator& c, std::int64_t count) {
  std::vector<float> values(count, 1.0f);
  c.AllReduceAsync(BufferOf(absl::MakeSpan(values))).Wait();
}

void Broadcast(const Communicator& c, std::int64_t count, int root) {
  std::vector<float> values(count, static_cast<float>(c.rank()));
  c.Broadcast(BufferOf(absl::MakeSpan(values)), root);
}

void Reduce(const Communicator& c, std::int64_t count, int root) {
  std::vector<float> in(count), out(count);
  c.Reduce(ConstBufferOf(absl::MakeConstSpan(in)), BufferOf(absl::MakeSpan(out)), ReduceOp::kSum, root);
}

// One buffer holds a part, the other one part per rank.
struct Parts {
  Parts(const Communicator& c, std::int64_t count) : part(count), whole(count * c.size()) {}
  std::vector<float> part, whole;
};

void AllGather(const Communicator& c, std::int64_t count) {
  Parts p(c, count);
  c.AllGather(ConstBufferOf(absl::MakeConstSpan(p.part)), BufferOf(absl::MakeSpan(p.whole)));
}

void ReduceScatter(const Communicator& c, std::int64_t count) {
  Parts p(c, count);
  c.ReduceScatter(ConstBufferOf(absl::MakeConstSpan(p.whole)), BufferOf(absl::MakeSpan(p.part)));
}

void Gather(const Communicator& c, std::int64_t count) {
  Parts p(c, count);
  c.Gather(ConstBufferOf(absl::MakeConstSpan(p.part)), BufferOf(absl::MakeSpan(p.whole)), 0);
}

void Scatter(const Communicator& c, std::int64_t count) {
  Parts p(c, count);
  c.Scatter(ConstBufferOf(absl::MakeConstSpan(p.whole)), BufferOf(absl::MakeSpan(p.part)), 0);
}

void AllToAll(const Communicator& c, std::int64_t count) {
  Parts from(c, count), to(c, count);
  c.AllToAll(ConstBufferOf(absl::MakeConstSpan(from.whole)), BufferOf(absl::MakeSpan(to.whole)));
}

// All parts have `expected` elements, except for the one that this rank sends to rank 0.
void AllToAllV(const Communicator& c, std::int64_t sent, std::int64_t expected) {
  std::vector<std::int64_t> receive_counts(c.size(), expected), send_counts = receive_counts;
  send_counts[0] = sent;
  std::vector<float> in(expected * (c.size() - 1) + send_counts[0]), out(expected * c.size());
  c.AllToAllV(ConstBufferOf(absl::MakeConstSpan(in)), send_counts, BufferOf(absl::MakeSpan(out)),
              receive_counts);
}

// Of the same shape, on different data.
void Tagged(const Communicator& c, int tag, Operation operation) {
  Parts p(c, 5);
  const auto part = BufferOf(absl::MakeSpan(p.part)), whole = BufferOf(absl::MakeSpan(p.whole));
  if (operation == Operation::kAllReduce) c.AllReduceAsync(part, ReduceOp::kSum, tag).Wait();
  if (operation == Operation::kAllGather) c.AllGatherAsync(part, whole, tag).Wait();
  if (operation == Operation::kReduceScatter) c.ReduceScatterAsync(whole, part, ReduceOp::kSum, tag).Wait();
  std::printf("rank %d computed %g\n", c.rank(), static_cast<double>(p.part.back()));
}

// The odd rank sends as many bytes as the others expect.
template <typename Sent, typename Expected>
void Message(const Communicator& c, bool odd, std::int64_t bytes) {
  std::vector<Sent> sent(bytes / sizeof(Sent));
  std::vector<Expected> expected(bytes / sizeof(Expected));
  if (odd) c.Send(ConstBufferOf(absl::MakeConstSpan(sent)), 0, 5);
  if (c.rank() == 0) c.Receive(BufferOf(absl::MakeSpan(expected)), kOddRank, 5);
  if (c.rank() == 0) std::printf("rank 0 received %g\n", static_cast<double>(expected[0]));
}

// Two operations in flight, which the odd rank starts the other way round.
void TwoInFlight(const Communicator& c, bool swapped) {
  std::vector<float> a(3, 1.0f), b(4, 1.0f);
  auto first = c.AllReduceAsync(BufferOf(absl::MakeSpan(swapped ? b : a)));
  auto second = c.AllReduceAsync(BufferOf(absl::MakeSpan(swapped ? a : b)));
  second.Wait();
  first.Wait();
}

using Call = std::function<void(const Communicator&, bool odd)>;

std::map<std::string, Call> Cases() {
  return {
      {"all_reduce_counts", [](auto& c, bool odd) { AllReduce<float>(c, odd ? 4 : 3); }},
      {"all_reduce_empty", [](auto& c, bool odd) { AllReduce<float>(c, odd ? 0 : 1); }},
      {"all_reduce_long_counts", [](auto& c, bool odd) { AllReduce<float>(c, odd ? kLong + 1 : kLong); }},
      {"all_reduce_async", [](auto& c, bool odd) { AllReduceAsync(c, odd ? 50'000 : 50'001); }},
      {"all_reduce_types", [](auto& c, bool odd) { odd ? AllReduce<double>(c, 6) : AllReduce<float>(c, 6); }},
      {"all_reduce_same_bytes",
       [](auto& c, bool odd) { odd ? AllReduce<double>(c, kLong / 2) : AllReduce<float>(c, kLong); }},
      {"all_reduce_reductions",
       [](auto& c, bool odd) { AllReduce<float>(c, 6, odd ? ReduceOp::kMax : ReduceOp::kSum); }},
      {"all_reduce_long_reductions",
       [](auto& c, bool odd) { AllReduce<float>(c, kLong, odd ? ReduceOp::kMax : ReduceOp::kSum); }},
      {"barrier_and_all_reduce", [](auto& c, bool odd) { odd ? c.Barrier() : AllReduce<float>(c, 3); }},
      {"barrier_and_broadcast", [](auto& c, bool odd) { odd ? c.Barrier() : Broadcast(c, 3, 0); }},
      {"broadcast_and_all_reduce",
       [](auto& c, bool odd) { odd ? Broadcast(c, 3, 0) : AllReduce<float>(c, 3); }},
      {"broadcast_roots", [](auto& c, bool odd) { Broadcast(c, 3, odd ? 2 : 0); }},
      {"broadcast_counts", [](auto& c, bool odd) { Broadcast(c, odd ? 3 : 4, 0); }},
      {"broadcast_long_counts", [](auto& c, bool odd) { Broadcast(c, odd ? kLong : kLong + 1, 0); }},
      {"reduce_roots", [](auto& c, bool odd) { Reduce(c, 3, odd ? 2 : 0); }},
      {"all_gather_counts", [](auto& c, bool odd) { AllGather(c, odd ? 4 : 3); }},
      {"all_gather_long_counts", [](auto& c, bool odd) { AllGather(c, odd ? kLong + 1 : kLong); }},
      {"reduce_scatter_counts", [](auto& c, bool odd) { ReduceScatter(c, odd ? 4 : 3); }},
      {"reduce_scatter_long_counts", [](auto& c, bool odd) { ReduceScatter(c, odd ? kLong + 1 : kLong); }},
      {"reduce_scatter_and_all_gather",
       [](auto& c, bool odd) { odd ? ReduceScatter(c, 3) : AllGather(c, 3); }},
      {"gather_counts", [](auto& c, bool odd) { Gather(c, odd ? 4 : 3); }},
      {"scatter_counts", [](auto& c, bool odd) { Scatter(c, odd ? 4 : 3); }},
      {"all_to_all_counts", [](auto& c, bool odd) { AllToAll(c, odd ? 4 : 3); }},
      {"all_to_all_long_counts", [](auto& c, bool odd) { AllToAll(c, odd ? kLong + 1 : kLong); }},
      {"reduce_long_counts", [](auto& c, bool odd) { Reduce(c, odd ? kLong : kLong + 1, 0); }},
      {"message_all_to_all_v_more", [](auto& c, bool odd) { AllToAllV(c, odd ? kLong : 3, 3); }},
      {"message_all_to_all_v_fewer", [](auto& c, bool odd) { AllToAllV(c, odd ? 3 : kLong, kLong); }},
      {"message_all_to_all_v_unexpected", [](auto& c, bool odd) { AllToAllV(c, odd ? 3 : 0, 0); }},
      {"all_reduce_tags", [](auto& c, bool odd) { Tagged(c, odd ? 1 : 2, Operation::kAllReduce); }},
      {"all_gather_tags", [](auto& c, bool odd) { Tagged(c, odd ? 1 : 2, Operation::kAllGather); }},
      {"reduce_scatter_tags", [](auto& c, bool odd) { Tagged(c, odd ? 1 : 2, Operation::kReduceScatter); }},
      {"message_floats", [](auto& c, bool odd) { Message<float, double>(c, odd, 32); }},
      {"message_lengths",
       [](auto& c, bool odd) {
         odd ? Message<float, float>(c, odd, 4 * kLong) : Message<float, float>(c, odd, 64);
       }},
      {"message_integers", [](auto& c, bool odd) { Message<std::int32_t, float>(c, odd, 32); }},
      {"message_long", [](auto& c, bool odd) { Message<std::int64_t, double>(c, odd, 8 * kLong); }},
      {"two_in_flight", [](auto& c, bool odd) { TwoInFlight(c, odd); }},
      {"split_and_barrier",
       [](auto& c, bool odd) { odd ? c.Barrier() : (void)c.Split(0, c.rank(), "part"); }},
  };
}

// Short and long calls use different algorithms. Neither may write past the end of the other's buffers.
void AddLongAndShort(std::map<std::string, Call>& cases) {
  using Sized = std::function<void(const Communicator&, std::int64_t)>;
  const std::map<std::string, Sized> operations = {
      {"all_reduce", [](auto& c, std::int64_t count) { AllReduce<float>(c, count); }},
      {"all_gather", AllGather},
      {"all_to_all", AllToAll},
      {"broadcast", [](auto& c, std::int64_t count) { Broadcast(c, count, 0); }},
      {"gather", Gather},
      {"reduce", [](auto& c, std::int64_t count) { Reduce(c, count, 0); }},
      {"reduce_scatter", ReduceScatter},
      {"scatter", Scatter}};
  for (const auto& [name, call] : operations) {
    cases[name + "_long_and_short"] = [call = call](auto& c, bool odd) { call(c, odd ? kLong : 3); };
    cases[name + "_short_and_long"] = [call = call](auto& c, bool odd) { call(c, odd ? 3 : kLong); };
    // Half of the ranks each: the neighbours of most make the same call.
    cases["halves_" + name] = [call = call](auto& c, bool) { call(c, c.rank() < c.size() / 2 ? 3 : kLong); };
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto cases = Cases();
  AddLongAndShort(cases);
  if (argc < 2) {
    for (const auto& [name, call] : cases) std::printf("%s\n", name.c_str());
    return 0;
  }
  auto options = plait::comm::testing::SessionOptionsFromFlags(argc, argv);
  options.setup_timeout_seconds = options.step_timeout_seconds = 600;
  return plait::comm::RunMain(argc, argv, options, [&](plait::comm::Session& session) -> absl::Status {
    const Communicator tp = session.world().Split(0, session.world().rank(), "tp");
    tp.Barrier();
    cases.at(argv[1])(tp, tp.rank() == kOddRank);
    return absl::OkStatus();
  });
}
