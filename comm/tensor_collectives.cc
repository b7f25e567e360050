#include "comm/tensor_collectives.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "comm/tensor_type.h"

namespace plait::comm {
namespace {

Buffer BufferOfTensor(const at::Tensor& tensor) {
  void* const data = tensor.is_meta() ? nullptr : tensor.data_ptr();
  return {data, tensor.numel(), TypeOf(tensor.scalar_type()),
          tensor.is_cuda() ? Device::kCuda : Device::kCpu};
}

std::int64_t RowElements(const at::Tensor& tensor) {
  PLAIT_CHECK(tensor.dim() > 0) << "a tensor without dimensions has no rows";
  const auto sizes = tensor.sizes();
  return std::accumulate(sizes.begin() + 1, sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<std::int64_t> Elements(absl::Span<const std::int64_t> rows, const at::Tensor& tensor) {
  std::vector<std::int64_t> elements(rows.begin(), rows.end());
  for (std::int64_t& count : elements) count *= RowElements(tensor);
  return elements;
}

}  // namespace

// The operands of an operation, and where its result goes.
struct TensorWork::State {
  at::Tensor in;      // contiguous, in memory that the transport can read
  at::Tensor out;     // likewise; the caller's own memory if that is contiguous
  at::Tensor result;  // the caller's tensor if `out` is a copy of it
  Work work;

  void CopyBack() {
    if (result.defined()) result.copy_(out);
    result = at::Tensor();
  }
};

TensorWork::TensorWork() = default;
TensorWork::TensorWork(std::unique_ptr<State> state) : state_(std::move(state)) {}
TensorWork::TensorWork(TensorWork&&) noexcept = default;
TensorWork& TensorWork::operator=(TensorWork&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
TensorWork::~TensorWork() = default;

bool TensorWork::Test() {
  if (state_ == nullptr) return true;
  if (!state_->work.Test()) return false;
  Wait();
  return true;
}

void TensorWork::Wait() {
  if (state_ == nullptr) return;
  state_->work.Wait();
  state_->CopyBack();
  state_.reset();
}

// Prepares the operands of one call: on the transport's device, contiguous.
class TensorCall {
 public:
  explicit TensorCall(const Communicator& comm, bool reduces = false)
      : comm_(comm), reduces_(reduces), state_(std::make_unique<TensorWork::State>()) {}

  TensorCall& In(const at::Tensor& tensor) {
    ChooseTransport(tensor);
    state_->in = tensor.detach().to(device(), TypeFor(tensor)).contiguous();
    return *this;
  }
  // `reads`: the operation also reads the tensor's values.
  TensorCall& Out(const at::Tensor& tensor, bool reads) {
    ChooseTransport(tensor);
    const at::Tensor target = tensor.detach();
    if (target.is_contiguous() && target.device() == device() && target.scalar_type() == TypeFor(target)) {
      state_->out = target;
      return *this;
    }
    state_->result = target;
    state_->out = at::empty(target.sizes(), target.options().device(device()).dtype(TypeFor(target)));
    if (reads) state_->out.copy_(target);
    return *this;
  }

  ConstBuffer in() const { return BufferOfTensor(state_->in); }
  Buffer out() const { return BufferOfTensor(state_->out); }
  const Communicator& transport() const { return *transport_; }

  TensorWork Finish(Work work) {
    state_->work = std::move(work);
    return TensorWork(std::move(state_));
  }

 private:
  at::Device device() const {
    return transport_->device() == Device::kCuda || device_.is_meta() ? device_ : at::Device(at::kCPU);
  }
  // MPI's backend reduces half precision in float32 by itself, NCCL does not.
  at::ScalarType TypeFor(const at::Tensor& tensor) const {
    const bool half = tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
    return reduces_ && half && transport_->device() == Device::kCuda ? at::kFloat : tensor.scalar_type();
  }
  void ChooseTransport(const at::Tensor& tensor) {
    PLAIT_CHECK(!transport_ || tensor.device() == device_)
        << "the tensors of one call are on different devices";
    device_ = tensor.device();
    if (!transport_) transport_ = tensor.is_cuda() ? comm_.OnCuda(tensor.device().index()) : comm_;
  }

  Communicator comm_;
  bool reduces_;
  std::optional<Communicator> transport_;
  at::Device device_ = at::kCPU;
  std::unique_ptr<TensorWork::State> state_;
};

namespace {

enum class Mode { kBlocking, kAsync };

// Calls `blocking` or `async`; returns the work to wait for.
template <typename Blocking, typename Async>
TensorWork Issue(TensorCall& call, Mode mode, Blocking blocking, Async async) {
  if (mode == Mode::kAsync) return call.Finish(async(call.transport()));
  blocking(call.transport());
  return call.Finish(Work());
}

TensorWork AllReduce(Mode mode, const Communicator& comm, at::Tensor& values, ReduceOp op, int tag,
                     CallSite site) {
  TensorCall call(comm, /*reduces=*/true);
  call.Out(values, /*reads=*/true);
  return Issue(
      call, mode, [&](const Communicator& c) { c.AllReduce(call.out(), op, site); },
      [&](const Communicator& c) { return c.AllReduceAsync(call.out(), op, tag, site); });
}

TensorWork Broadcast(Mode mode, const Communicator& comm, at::Tensor& values, int root, CallSite site) {
  TensorCall call(comm);
  call.Out(values, /*reads=*/comm.rank() == root);
  return Issue(
      call, mode, [&](const Communicator& c) { c.Broadcast(call.out(), root, site); },
      [&](const Communicator& c) { return c.BroadcastAsync(call.out(), root, site); });
}

TensorWork AllGather(Mode mode, const Communicator& comm, const at::Tensor& part, at::Tensor& whole, int tag,
                     CallSite site) {
  TensorCall call(comm);
  call.In(part).Out(whole, /*reads=*/false);
  return Issue(
      call, mode, [&](const Communicator& c) { c.AllGather(call.in(), call.out(), site); },
      [&](const Communicator& c) { return c.AllGatherAsync(call.in(), call.out(), tag, site); });
}

TensorWork ReduceScatter(Mode mode, const Communicator& comm, const at::Tensor& whole, at::Tensor& part,
                         ReduceOp op, int tag, CallSite site) {
  TensorCall call(comm, /*reduces=*/true);
  call.In(whole).Out(part, /*reads=*/false);
  return Issue(
      call, mode, [&](const Communicator& c) { c.ReduceScatter(call.in(), call.out(), op, site); },
      [&](const Communicator& c) { return c.ReduceScatterAsync(call.in(), call.out(), op, tag, site); });
}

TensorWork AllToAll(Mode mode, const Communicator& comm, const at::Tensor& in, at::Tensor& out,
                    CallSite site) {
  TensorCall call(comm);
  call.In(in).Out(out, /*reads=*/false);
  return Issue(
      call, mode, [&](const Communicator& c) { c.AllToAll(call.in(), call.out(), site); },
      [&](const Communicator& c) { return c.AllToAllAsync(call.in(), call.out(), site); });
}

TensorWork AllToAllV(Mode mode, const Communicator& comm, const at::Tensor& in,
                     absl::Span<const std::int64_t> send_rows, at::Tensor& out,
                     absl::Span<const std::int64_t> receive_rows, CallSite site) {
  TensorCall call(comm);
  call.In(in).Out(out, /*reads=*/false);
  const auto sent = Elements(send_rows, in), received = Elements(receive_rows, out);
  return Issue(
      call, mode, [&](const Communicator& c) { c.AllToAllV(call.in(), sent, call.out(), received, site); },
      [&](const Communicator& c) { return c.AllToAllVAsync(call.in(), sent, call.out(), received, site); });
}

TensorWork Send(Mode mode, const Communicator& comm, const at::Tensor& values, int to, int tag,
                CallSite site) {
  TensorCall call(comm);
  call.In(values);
  return Issue(
      call, mode, [&](const Communicator& c) { c.Send(call.in(), to, tag, site); },
      [&](const Communicator& c) { return c.SendAsync(call.in(), to, tag, site); });
}

TensorWork Receive(Mode mode, const Communicator& comm, at::Tensor& values, int from, int tag,
                   CallSite site) {
  TensorCall call(comm);
  call.Out(values, /*reads=*/false);
  return Issue(
      call, mode, [&](const Communicator& c) { c.Receive(call.out(), from, tag, site); },
      [&](const Communicator& c) { return c.ReceiveAsync(call.out(), from, tag, site); });
}

}  // namespace

at::Tensor AllGather(const Communicator& comm, const at::Tensor& part, CallSite site) {
  PLAIT_CHECK(part.dim() > 0) << "a tensor without dimensions has no rows";
  std::vector<std::int64_t> sizes = part.sizes().vec();
  sizes[0] *= comm.size();
  at::Tensor whole = at::empty(sizes, part.options());
  AllGather(Mode::kBlocking, comm, part, whole, kNoTag, site).Wait();
  return whole;
}

void AllReduce(const Communicator& comm, at::Tensor& values, ReduceOp op, CallSite site) {
  AllReduce(Mode::kBlocking, comm, values, op, kNoTag, site).Wait();
}
TensorWork AllReduceAsync(const Communicator& comm, at::Tensor& values, ReduceOp op, int tag, CallSite site) {
  return AllReduce(Mode::kAsync, comm, values, op, tag, site);
}
void Broadcast(const Communicator& comm, at::Tensor& values, int root, CallSite site) {
  Broadcast(Mode::kBlocking, comm, values, root, site).Wait();
}
TensorWork BroadcastAsync(const Communicator& comm, at::Tensor& values, int root, CallSite site) {
  return Broadcast(Mode::kAsync, comm, values, root, site);
}
void AllGather(const Communicator& comm, const at::Tensor& part, at::Tensor& whole, CallSite site) {
  AllGather(Mode::kBlocking, comm, part, whole, kNoTag, site).Wait();
}
TensorWork AllGatherAsync(const Communicator& comm, const at::Tensor& part, at::Tensor& whole, int tag,
                          CallSite site) {
  return AllGather(Mode::kAsync, comm, part, whole, tag, site);
}
void ReduceScatter(const Communicator& comm, const at::Tensor& whole, at::Tensor& part, ReduceOp op,
                   CallSite site) {
  ReduceScatter(Mode::kBlocking, comm, whole, part, op, kNoTag, site).Wait();
}
TensorWork ReduceScatterAsync(const Communicator& comm, const at::Tensor& whole, at::Tensor& part,
                              ReduceOp op, int tag, CallSite site) {
  return ReduceScatter(Mode::kAsync, comm, whole, part, op, tag, site);
}
void AllToAll(const Communicator& comm, const at::Tensor& in, at::Tensor& out, CallSite site) {
  AllToAll(Mode::kBlocking, comm, in, out, site).Wait();
}
TensorWork AllToAllAsync(const Communicator& comm, const at::Tensor& in, at::Tensor& out, CallSite site) {
  return AllToAll(Mode::kAsync, comm, in, out, site);
}
void AllToAllV(const Communicator& comm, const at::Tensor& in, absl::Span<const std::int64_t> send_rows,
               at::Tensor& out, absl::Span<const std::int64_t> receive_rows, CallSite site) {
  AllToAllV(Mode::kBlocking, comm, in, send_rows, out, receive_rows, site).Wait();
}
TensorWork AllToAllVAsync(const Communicator& comm, const at::Tensor& in,
                          absl::Span<const std::int64_t> send_rows, at::Tensor& out,
                          absl::Span<const std::int64_t> receive_rows, CallSite site) {
  return AllToAllV(Mode::kAsync, comm, in, send_rows, out, receive_rows, site);
}
void Send(const Communicator& comm, const at::Tensor& values, int to, int tag, CallSite site) {
  Send(Mode::kBlocking, comm, values, to, tag, site).Wait();
}
TensorWork SendAsync(const Communicator& comm, const at::Tensor& values, int to, int tag, CallSite site) {
  return Send(Mode::kAsync, comm, values, to, tag, site);
}
void Receive(const Communicator& comm, at::Tensor& values, int from, int tag, CallSite site) {
  Receive(Mode::kBlocking, comm, values, from, tag, site).Wait();
}
TensorWork ReceiveAsync(const Communicator& comm, at::Tensor& values, int from, int tag, CallSite site) {
  return Receive(Mode::kAsync, comm, values, from, tag, site);
}

}  // namespace plait::comm
