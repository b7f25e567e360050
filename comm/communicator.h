// A group of ranks, with collectives and point-to-point messages.
//
//   comm::Communicator world = session.world();          // comm/session.h
//   comm::Communicator lp = world.Split(color, key, "lp");
//   lp.AllReduce(comm::BufferOf(absl::MakeSpan(losses)), comm::ReduceOp::kSum);
//   comm::Work work = lp.SendAsync(comm::ConstBufferOf(absl::MakeConstSpan(state)), /*to=*/1, /*tag=*/0);
//   ...
//   work.Wait();
//
// All ranks of a group must call the same collectives in the same order. In a group of one, collectives copy or do
// nothing. Every call is recorded (comm/flight_recorder.h) and watched (comm/watchdog): a rank that does not take part
// ends the job with a line that names it. Communication returns no status: a transport failure throws
// comm::TransportError; an invalid argument (a count that does not match, a rank outside the group) aborts.
//
// The same inputs on the same ranks give bitwise identical results, every time and on every rank. Counts are 64-bit;
// long buffers are split where MPI counts in 32 bits. Not thread-safe: use all communicators of a process from one
// thread at a time. Tensors: comm/tensor_collectives.h.
#ifndef PLAIT_COMM_COMMUNICATOR_H_
#define PLAIT_COMM_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "comm/buffer.h"
#include "comm/operation.h"
#include "comm/stats.h"

namespace plait::comm {

class FlightRecorder;
class Group;        // comm/group.h
class PendingWork;  // comm/backend.h
// Source location of a call; the hang report prints it.
using CallSite = std::source_location;

// An operation in flight. The caller must not touch its buffers until it is complete. Move-only. Destroying an
// incomplete one aborts (a message would be lost), except during stack unwinding.
class Work {
 public:
  Work();
  explicit Work(std::unique_ptr<PendingWork> pending);
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  // True once complete; never blocks. Advances all operations of the process. The session's timeout for missing ranks does
  // not apply to a loop of Test: finish with Wait.
  bool Test();
  void Wait();  // blocks until complete; returns at once if default-constructed or already complete
  bool valid() const { return pending_ != nullptr; }

 private:
  std::unique_ptr<PendingWork> pending_;
};

class Communicator {
 public:
  // A group of one, without MPI.
  static Communicator Self();
  explicit Communicator(std::shared_ptr<Group> group);

  int rank() const;
  int size() const;
  const std::string& name() const;  // the axis: "world", "lp", "dp_shard", ...

  // The memory that buffers must be in.
  Device device() const;
  // The same ranks, for buffers in the memory of CUDA device `device_index`; itself if the session has no
  // device backend. The first call is collective. Throws TransportError if NCCL cannot be initialised.
  Communicator OnCuda(int device_index, CallSite site = CallSite::current()) const;

  // Shared by all communicators of the session.
  const Stats& stats() const;
  FlightRecorder& recorder() const;

  // Collective, as MPI_Comm_split. Ranks with the same `color` form a group, ordered by (key, rank). A rank with a
  // negative color gets a group of one. `name` is the axis in stats and reports.
  Communicator Split(int color, int key, absl::string_view name, CallSite site = CallSite::current()) const;

  // All below are collective over the group, but Send and Receive. They may be in place: `in` is this rank's part of
  // `out` (all-gather; gather on the root), `out` is this rank's part of `in` (reduce-scatter; scatter on the root), or
  // both are the same memory (AllToAll, but not AllToAllV; reduce on the root). Any other overlap aborts.
  void AllReduce(Buffer values, ReduceOp op = ReduceOp::kSum, CallSite site = CallSite::current()) const;
  void Broadcast(Buffer values, int root, CallSite site = CallSite::current()) const;
  // `out` holds size() x in.count elements, ordered by rank.
  void AllGather(ConstBuffer in, Buffer out, CallSite site = CallSite::current()) const;
  // `in` holds size() x out.count elements; this rank receives the reduced part of its own index.
  void ReduceScatter(ConstBuffer in, Buffer out, ReduceOp op = ReduceOp::kSum,
                     CallSite site = CallSite::current()) const;
  // Part r of `in` goes to rank r; part r of `out` comes from rank r. Counts are in elements, one per rank.
  void AllToAll(ConstBuffer in, Buffer out, CallSite site = CallSite::current()) const;
  void AllToAllV(ConstBuffer in, absl::Span<const std::int64_t> send_counts, Buffer out,
                 absl::Span<const std::int64_t> receive_counts, CallSite site = CallSite::current()) const;
  // Used on the root only, and may be empty elsewhere: `out` of Reduce and Gather, `in` of Scatter.
  void Reduce(ConstBuffer in, Buffer out, ReduceOp op, int root, CallSite site = CallSite::current()) const;
  void Gather(ConstBuffer in, Buffer out, int root, CallSite site = CallSite::current()) const;
  void Scatter(ConstBuffer in, Buffer out, int root, CallSite site = CallSite::current()) const;
  // `tag` is in [0, 2^30). A message must have the count and type of the receive that matches it (TransportError).
  void Send(ConstBuffer values, int to, int tag, CallSite site = CallSite::current()) const;
  void Receive(Buffer values, int from, int tag, CallSite site = CallSite::current()) const;
  void Barrier(CallSite site = CallSite::current()) const;

  // The same, non-blocking. In a collective, `tag` identifies the data, to tell calls of the same shape apart: ranks
  // that pass different tags are reported like ranks that make different calls.
  [[nodiscard]] Work AllReduceAsync(Buffer values, ReduceOp op = ReduceOp::kSum, int tag = kNoTag,
                                    CallSite site = CallSite::current()) const;
  [[nodiscard]] Work BroadcastAsync(Buffer values, int root, CallSite site = CallSite::current()) const;
  [[nodiscard]] Work AllGatherAsync(ConstBuffer in, Buffer out, int tag = kNoTag,
                                    CallSite site = CallSite::current()) const;
  [[nodiscard]] Work ReduceScatterAsync(ConstBuffer in, Buffer out, ReduceOp op = ReduceOp::kSum,
                                        int tag = kNoTag, CallSite site = CallSite::current()) const;
  [[nodiscard]] Work AllToAllAsync(ConstBuffer in, Buffer out, CallSite site = CallSite::current()) const;
  [[nodiscard]] Work AllToAllVAsync(ConstBuffer in, absl::Span<const std::int64_t> send_counts, Buffer out,
                                    absl::Span<const std::int64_t> receive_counts,
                                    CallSite site = CallSite::current()) const;
  [[nodiscard]] Work ReduceAsync(ConstBuffer in, Buffer out, ReduceOp op, int root,
                                 CallSite site = CallSite::current()) const;
  [[nodiscard]] Work GatherAsync(ConstBuffer in, Buffer out, int root,
                                 CallSite site = CallSite::current()) const;
  [[nodiscard]] Work ScatterAsync(ConstBuffer in, Buffer out, int root,
                                  CallSite site = CallSite::current()) const;
  [[nodiscard]] Work SendAsync(ConstBuffer values, int to, int tag,
                               CallSite site = CallSite::current()) const;
  [[nodiscard]] Work ReceiveAsync(Buffer values, int from, int tag,
                                  CallSite site = CallSite::current()) const;
  [[nodiscard]] Work BarrierAsync(CallSite site = CallSite::current()) const;

  // Collective. OK if `mine` is OK on every rank; else, on every rank, the largest status code and the message of the
  // lowest failing rank. For set-up and I/O, so that all ranks take the same branch before their next collective.
  absl::Status Agree(const absl::Status& mine, CallSite site = CallSite::current()) const;

 private:
  void Run(const Request& request, CallSite site) const;
  Work Start(const Request& request, CallSite site) const;

  std::shared_ptr<Group> group_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_COMMUNICATOR_H_
