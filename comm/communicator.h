// A group of ranks that talk to each other.
//
//   comm::Communicator world = session.world();          // comm/session.h
//   comm::Communicator lp = world.Split(color, key, "lp");
//   lp.AllReduce(comm::BufferOf(absl::MakeSpan(losses)), comm::ReduceOp::kSum);
//   comm::Work work = lp.SendAsync(comm::ConstBufferOf(absl::MakeConstSpan(state)), /*to=*/1, /*tag=*/0);
//   ...
//   work.Wait();
//
// All ranks of a group call the same collectives in the same order. A group of one is the identity.
// Every call is recorded (comm/flight_recorder.h) and watched (comm/watchdog): a rank that does not come
// ends the job with one line that names it. No call returns a status: a transport failure throws
// comm::TransportError, an argument that cannot be right (a count that does not fit, a rank outside the
// group) ends the process.
//
// The same inputs on the same ranks give the same bits, every time and on every rank. Counts are 64 bits
// wide; transports that count in 32 bits get several messages. Communicators of one process are used by one
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
// Where in the program a call stands; the hang report names it.
using CallSite = std::source_location;

// An operation under way. Its buffers stay untouched by the caller until it is complete. Move-only. To drop
// one incomplete is a programming error and ends the process (a message would be lost), unless an exception
// is already on its way.
class Work {
 public:
  Work();
  explicit Work(std::unique_ptr<PendingWork> pending);
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  bool Test();  // true once complete; never blocks. Moves the operation on.
  void Wait();  // returns when complete; at once if it already is, or if there is nothing to wait for
  bool valid() const { return pending_ != nullptr; }

 private:
  std::unique_ptr<PendingWork> pending_;
};

class Communicator {
 public:
  // The group of one, without MPI.
  static Communicator Self();
  explicit Communicator(std::shared_ptr<Group> group);

  int rank() const;
  int size() const;
  const std::string& name() const;  // the axis: "world", "lp", "dp_shard", ...

  // Where its buffers live.
  Device device() const;
  // The same ranks with buffers in the memory of CUDA device `device_index`; itself where the session has no
  // device backend. Collective at its first call. Throws TransportError if the device transport cannot be set
  // up.
  Communicator OnCuda(int device_index, CallSite site = CallSite::current()) const;

  // Of the whole process: all its communicators note their calls in one place.
  const Stats& stats() const;
  FlightRecorder& recorder() const;

  // Collective. Ranks with the same `color` form a group, ordered by (key, rank). A negative color joins none
  // and gets a group of one.
  Communicator Split(int color, int key, absl::string_view name, CallSite site = CallSite::current()) const;

  // Below, `in` and `out` may also be in place where the parts coincide: `in` is this rank's part of `out`
  // (all-gather, gather on the root), `out` is this rank's part of `in` (scatter on the root;
  // reduce-scatter), or both are the same memory (all-to-all with equal counts, reduce on the root). Any
  // other overlap is an error.
  void AllReduce(Buffer values, ReduceOp op = ReduceOp::kSum, CallSite site = CallSite::current()) const;
  void Broadcast(Buffer values, int root, CallSite site = CallSite::current()) const;
  // `out` holds size() x in.count elements, ordered by rank.
  void AllGather(ConstBuffer in, Buffer out, CallSite site = CallSite::current()) const;
  // `in` holds size() x out.count elements; this rank receives the reduced part of its own index.
  void ReduceScatter(ConstBuffer in, Buffer out, ReduceOp op = ReduceOp::kSum,
                     CallSite site = CallSite::current()) const;
  // Part r of `in` goes to rank r; part r of `out` comes from rank r.
  void AllToAll(ConstBuffer in, Buffer out, CallSite site = CallSite::current()) const;
  void AllToAllV(ConstBuffer in, absl::Span<const std::int64_t> send_counts, Buffer out,
                 absl::Span<const std::int64_t> receive_counts, CallSite site = CallSite::current()) const;
  // `out` is read on the root alone; it may be empty elsewhere.
  void Reduce(ConstBuffer in, Buffer out, ReduceOp op, int root, CallSite site = CallSite::current()) const;
  void Gather(ConstBuffer in, Buffer out, int root, CallSite site = CallSite::current()) const;
  void Scatter(ConstBuffer in, Buffer out, int root, CallSite site = CallSite::current()) const;
  void Send(ConstBuffer values, int to, int tag, CallSite site = CallSite::current()) const;
  void Receive(Buffer values, int from, int tag, CallSite site = CallSite::current()) const;
  void Barrier(CallSite site = CallSite::current()) const;

  // As above, returning at once. `tag` tells calls of the same shape apart, by what their data is: ranks that
  // make the call with different tags are named, as ranks that call something else.
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

  // Collective. OK if every rank brings OK; else, on every rank, the worst code with the message of the
  // lowest failing rank. For set-up and I/O: between two collectives every rank takes the same decision.
  absl::Status Agree(const absl::Status& mine, CallSite site = CallSite::current()) const;

 private:
  void Run(const Request& request, CallSite site) const;
  Work Start(const Request& request, CallSite site) const;

  std::shared_ptr<Group> group_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_COMMUNICATOR_H_
