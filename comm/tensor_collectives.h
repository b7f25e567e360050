// The collectives of Communicator on tensors.
//
//   comm::AllReduce(tp, gradient);                             // in place
//   at::Tensor whole = comm::AllGather(dp, shard);             // (size * rows, ...)
//   comm::TensorWork work = comm::ReduceScatterAsync(dp, gradients, shard);
//   ...
//   work.Wait();
//
// The transport follows the tensor's device: the communicator's own (MPI) for host memory, NCCL for CUDA if the session
// has it (SessionOptions::device_backend), else a copy through host memory. All tensors of a call are on one device.
// Tensors need not be contiguous: strided ones are copied, and outputs copied back on completion. Not differentiable.
//
// Types: float32, float64, bfloat16, float16, int64, int32, uint8, bool. Other types and sizes that do not match
// abort. "Rows" are slices along dimension 0. All but Send and Receive are collective over `comm`.
#ifndef PLAIT_COMM_TENSOR_COLLECTIVES_H_
#define PLAIT_COMM_TENSOR_COLLECTIVES_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "comm/communicator.h"

namespace at {
class Tensor;
}

namespace plait::comm {

// An operation on tensors in flight; keeps their memory alive. Otherwise as Work in comm/communicator.h.
class TensorWork {
 public:
  TensorWork();
  TensorWork(TensorWork&&) noexcept;
  TensorWork& operator=(TensorWork&&) noexcept;
  ~TensorWork();
  bool Test();
  void Wait();
  bool in_flight() const { return state_ != nullptr; }  // Test or Wait has not seen it complete

 private:
  friend class TensorCall;
  struct State;
  explicit TensorWork(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// In place.
void AllReduce(const Communicator& comm, at::Tensor& values, ReduceOp op = ReduceOp::kSum,
               CallSite site = CallSite::current());
void Broadcast(const Communicator& comm, at::Tensor& values, int root, CallSite site = CallSite::current());
// (rows, ...) of each rank -> (size * rows, ...), concatenated by rank.
at::Tensor AllGather(const Communicator& comm, const at::Tensor& part, CallSite site = CallSite::current());
void AllGather(const Communicator& comm, const at::Tensor& part, at::Tensor& whole,
               CallSite site = CallSite::current());
// (size * rows, ...) -> (rows, ...): this rank's part of the reduced tensor.
void ReduceScatter(const Communicator& comm, const at::Tensor& whole, at::Tensor& part,
                   ReduceOp op = ReduceOp::kSum, CallSite site = CallSite::current());
// (size * rows, ...): part r goes to rank r; the same shape comes back.
void AllToAll(const Communicator& comm, const at::Tensor& in, at::Tensor& out,
              CallSite site = CallSite::current());
// in: (sum of send_rows, ...), out: (sum of receive_rows, ...); one number of rows per rank.
void AllToAllV(const Communicator& comm, const at::Tensor& in, absl::Span<const std::int64_t> send_rows,
               at::Tensor& out, absl::Span<const std::int64_t> receive_rows,
               CallSite site = CallSite::current());
void Send(const Communicator& comm, const at::Tensor& values, int to, int tag,
          CallSite site = CallSite::current());
void Receive(const Communicator& comm, at::Tensor& values, int from, int tag,
             CallSite site = CallSite::current());

// `tag` as in Communicator.
[[nodiscard]] TensorWork AllReduceAsync(const Communicator& comm, at::Tensor& values,
                                        ReduceOp op = ReduceOp::kSum, int tag = kNoTag,
                                        CallSite site = CallSite::current());
[[nodiscard]] TensorWork BroadcastAsync(const Communicator& comm, at::Tensor& values, int root,
                                        CallSite site = CallSite::current());
[[nodiscard]] TensorWork AllGatherAsync(const Communicator& comm, const at::Tensor& part, at::Tensor& whole,
                                        int tag = kNoTag, CallSite site = CallSite::current());
[[nodiscard]] TensorWork ReduceScatterAsync(const Communicator& comm, const at::Tensor& whole,
                                            at::Tensor& part, ReduceOp op = ReduceOp::kSum, int tag = kNoTag,
                                            CallSite site = CallSite::current());
[[nodiscard]] TensorWork AllToAllAsync(const Communicator& comm, const at::Tensor& in, at::Tensor& out,
                                       CallSite site = CallSite::current());
[[nodiscard]] TensorWork AllToAllVAsync(const Communicator& comm, const at::Tensor& in,
                                        absl::Span<const std::int64_t> send_rows, at::Tensor& out,
                                        absl::Span<const std::int64_t> receive_rows,
                                        CallSite site = CallSite::current());
[[nodiscard]] TensorWork SendAsync(const Communicator& comm, const at::Tensor& values, int to, int tag,
                                   CallSite site = CallSite::current());
[[nodiscard]] TensorWork ReceiveAsync(const Communicator& comm, at::Tensor& values, int from, int tag,
                                      CallSite site = CallSite::current());

}  // namespace plait::comm

#endif  // PLAIT_COMM_TENSOR_COLLECTIVES_H_
