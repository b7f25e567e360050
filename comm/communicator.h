// A group of ranks that talk to each other.
//
//   comm::Communicator world = session.world();          // comm/session.h
//   comm::Communicator lp = world.Split(color, key, "lp");
//   lp.AllReduce(comm::BufferOf(absl::MakeSpan(losses)), comm::ReduceOp::kSum);
//   comm::Work work = lp.SendAsync(bytes, /*to=*/lp.rank() + 1, /*tag=*/0);
//   ...
//   work.Wait();
//
// All ranks of a group call the same collectives in the same order. A group of one is the identity.
// Every call is recorded (comm/flight_recorder.h) and watched (comm/watchdog.h): a rank that does not come ends
// the job with one line that names it. No call returns a status: a transport failure throws comm::TransportError.
// Tensors: comm/tensor_collectives.h.
#ifndef PLAIT_COMM_COMMUNICATOR_H_
#define PLAIT_COMM_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "comm/buffer.h"

namespace plait::comm {

// Average divides the sum by the number of ranks; floating types only. bf16 and fp16 are reduced in float32.
enum class ReduceOp : std::uint8_t { kSum, kProduct, kMin, kMax, kAverage };

class Backend;       // comm/backend.h
class PendingWork;   // comm/backend.h

// An operation under way. Its buffers stay untouched by the caller until it is complete. Move-only; a Work that is
// dropped incomplete ends the program in debug builds (a message would be lost).
class Work {
 public:
  Work();
  explicit Work(std::unique_ptr<PendingWork> pending);
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  bool Test();   // true once complete; never blocks
  void Wait();   // returns when complete
  bool valid() const { return pending_ != nullptr; }

 private:
  std::unique_ptr<PendingWork> pending_;
};

class Communicator {
 public:
  // The group of one, without MPI.
  static Communicator Self();
  explicit Communicator(std::shared_ptr<Backend> backend);

  int rank() const;
  int size() const;
  const std::string& name() const;  // the axis: "world", "lp", "dp_shard", ...

  // Collective. Ranks with the same `color` form a group, ordered by (key, rank). A negative color joins none and
  // gets Self() back.
  Communicator Split(int color, int key, std::string_view name) const;

  // In place.
  void AllReduce(Buffer values, ReduceOp op = ReduceOp::kSum) const;
  void Broadcast(Buffer values, int root) const;
  // `out` holds size() x in.count elements, ordered by rank.
  void AllGather(ConstBuffer in, Buffer out) const;
  // `in` holds size() x out.count elements; this rank receives the reduced part of its own index.
  void ReduceScatter(ConstBuffer in, Buffer out, ReduceOp op = ReduceOp::kSum) const;
  // Part r of `in` goes to rank r; part r of `out` comes from rank r.
  void AllToAll(ConstBuffer in, Buffer out) const;
  void AllToAllV(ConstBuffer in, absl::Span<const std::int64_t> send_counts, Buffer out,
                 absl::Span<const std::int64_t> receive_counts) const;
  // `out` is read on the root alone; it may be empty elsewhere.
  void Reduce(ConstBuffer in, Buffer out, ReduceOp op, int root) const;
  void Gather(ConstBuffer in, Buffer out, int root) const;
  void Scatter(ConstBuffer in, Buffer out, int root) const;
  void Send(ConstBuffer values, int to, int tag) const;
  void Receive(Buffer values, int from, int tag) const;
  void Barrier() const;

  // As above, returning at once.
  [[nodiscard]] Work AllReduceAsync(Buffer values, ReduceOp op = ReduceOp::kSum) const;
  [[nodiscard]] Work BroadcastAsync(Buffer values, int root) const;
  [[nodiscard]] Work AllGatherAsync(ConstBuffer in, Buffer out) const;
  [[nodiscard]] Work ReduceScatterAsync(ConstBuffer in, Buffer out, ReduceOp op = ReduceOp::kSum) const;
  [[nodiscard]] Work AllToAllAsync(ConstBuffer in, Buffer out) const;
  [[nodiscard]] Work AllToAllVAsync(ConstBuffer in, absl::Span<const std::int64_t> send_counts, Buffer out,
                                    absl::Span<const std::int64_t> receive_counts) const;
  [[nodiscard]] Work ReduceAsync(ConstBuffer in, Buffer out, ReduceOp op, int root) const;
  [[nodiscard]] Work GatherAsync(ConstBuffer in, Buffer out, int root) const;
  [[nodiscard]] Work ScatterAsync(ConstBuffer in, Buffer out, int root) const;
  [[nodiscard]] Work SendAsync(ConstBuffer values, int to, int tag) const;
  [[nodiscard]] Work ReceiveAsync(Buffer values, int from, int tag) const;
  [[nodiscard]] Work BarrierAsync() const;

  // Collective. OK if every rank brings OK; else, on every rank, the worst code with the message of the lowest
  // failing rank. For set-up and I/O: between two collectives every rank takes the same decision.
  absl::Status Agree(const absl::Status& mine) const;

 private:
  std::shared_ptr<Backend> backend_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_COMMUNICATOR_H_
