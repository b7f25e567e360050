#include "parallel/gradient_reducer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "base/check.h"
#include "comm/tensor_collectives.h"

namespace plait::parallel {
namespace {

struct Bucket {
  std::vector<std::size_t> parameters;  // indices
  std::int64_t bytes = 0;
  at::Tensor packed;  // of buckets with several parameters
  std::size_t missing = 0;
  comm::TensorWork work;
  bool in_flight = false;
};

}  // namespace

struct GradientReducer::State {
  State(const comm::Communicator& communicator, std::vector<at::Tensor> tensors)
      : replicas(communicator), parameters(std::move(tensors)), bucket_of(parameters.size()) {}

  void MakeBuckets(const GradientReducerOptions& options);
  void Reset();
  void OnReady(std::size_t parameter);
  void LaunchReady();
  void Launch(Bucket& bucket);
  void Advance();
  void Complete(Bucket& bucket);

  comm::Communicator replicas;
  std::vector<at::Tensor> parameters;
  std::vector<std::size_t> bucket_of;
  std::vector<Bucket> buckets;
  std::size_t next = 0;  // bucket to leave
  std::vector<bool> ready;
  bool synchronizes = true;
};

namespace {

// Called by autograd behind each accumulation. It may outlive the reducer by one backward.
template <typename OwnerState>
class ReadyHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  ReadyHook(const std::shared_ptr<OwnerState>& state, std::size_t parameter)
      : state_(state), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable&) override {
    if (const std::shared_ptr<OwnerState> state = state_.lock()) state->OnReady(parameter_);
  }

 private:
  std::weak_ptr<OwnerState> state_;
  std::size_t parameter_;
};

std::int64_t BytesOf(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

}  // namespace

void GradientReducer::State::MakeBuckets(const GradientReducerOptions& options) {
  Bucket small;
  const auto close = [&] {
    if (!small.parameters.empty()) buckets.push_back(std::exchange(small, Bucket()));
  };
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const std::int64_t bytes = BytesOf(parameters[i]);
    if (bytes >= options.alone_bytes) {
      Bucket alone;
      alone.parameters = {i};
      alone.bytes = bytes;
      buckets.push_back(std::move(alone));
      continue;
    }
    const bool other_kind =
        !small.parameters.empty() && parameters[small.parameters[0]].dtype() != parameters[i].dtype();
    if (small.bytes + bytes > options.bucket_bytes || other_kind) close();
    small.parameters.push_back(i);
    small.bytes += bytes;
  }
  close();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    std::int64_t count = 0;
    for (const std::size_t i : buckets[b].parameters) {
      bucket_of[i] = b;
      count += parameters[i].numel();
    }
    if (buckets[b].parameters.size() > 1) {
      buckets[b].packed = at::empty({count}, parameters[buckets[b].parameters[0]].options());
    }
  }
}

void GradientReducer::State::Reset() {
  for (Bucket& bucket : buckets) bucket.missing = bucket.parameters.size();
  ready.assign(parameters.size(), false);
  next = 0;
}

void GradientReducer::State::OnReady(std::size_t parameter) {
  if (!synchronizes) return;
  PLAIT_CHECK(!ready[parameter]) << "a second backward before Finish: its gradients were already on the way";
  ready[parameter] = true;
  --buckets[bucket_of[parameter]].missing;
  LaunchReady();
  Advance();
}

void GradientReducer::State::LaunchReady() {
  while (next < buckets.size() && buckets[next].missing == 0) Launch(buckets[next++]);
}

void GradientReducer::State::Launch(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  at::Tensor values = bucket.packed;
  if (!values.defined()) {
    values = parameters[bucket.parameters[0]].grad();
  } else {
    std::int64_t offset = 0;
    for (const std::size_t i : bucket.parameters) {
      const at::Tensor& gradient = parameters[i].grad();
      values.narrow(0, offset, gradient.numel()).view(gradient.sizes()).copy_(gradient);
      offset += gradient.numel();
    }
  }
  bucket.work = comm::AllReduceAsync(replicas, values, comm::ReduceOp::kAverage);
  bucket.in_flight = true;
}

void GradientReducer::State::Advance() {
  for (std::size_t b = 0; b < next; ++b) {
    if (buckets[b].in_flight && buckets[b].work.Test()) Complete(buckets[b]);
  }
}

void GradientReducer::State::Complete(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  bucket.in_flight = false;
  bucket.work = comm::TensorWork();
  if (!bucket.packed.defined()) return;
  std::int64_t offset = 0;
  for (const std::size_t i : bucket.parameters) {
    at::Tensor gradient = parameters[i].grad();
    gradient.copy_(bucket.packed.narrow(0, offset, gradient.numel()).view(gradient.sizes()));
    offset += gradient.numel();
  }
}

GradientReducer::GradientReducer(const comm::Communicator& replicas, std::vector<at::Tensor> parameters,
                                 const GradientReducerOptions& options)
    : state_(std::make_shared<State>(replicas, std::move(parameters))) {
  state_->MakeBuckets(options);
  state_->Reset();
  for (std::size_t i = 0; i < state_->parameters.size(); ++i) {
    const at::Tensor& parameter = state_->parameters[i];
    PLAIT_CHECK(parameter.is_leaf() && parameter.requires_grad()) << "parameter " << i << " has no gradient";
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<ReadyHook<State>>(state_, i));
  }
}

GradientReducer::~GradientReducer() {
  for (const at::Tensor& parameter : state_->parameters) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  }
}

void GradientReducer::set_synchronizes(bool synchronizes) { state_->synchronizes = synchronizes; }

void GradientReducer::Finish(const OnReduced& reduced) {
  State& state = *state_;
  PLAIT_CHECK(state.synchronizes) << "Finish while gradients are only accumulated";
  for (std::size_t i = 0; i < state.parameters.size(); ++i) {
    if (state.ready[i]) continue;
    at::Tensor& gradient = state.parameters[i].mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(state.parameters[i].detach());
    state.OnReady(i);
  }
  std::vector<bool> told(state.buckets.size(), false);
  const auto tell_of_complete = [&] {
    for (std::size_t b = 0; b < told.size(); ++b) {
      if (told[b] || state.buckets[b].in_flight) continue;
      told[b] = true;
      if (reduced) reduced(state.buckets[b].parameters);
      state.Advance();
    }
  };
  for (Bucket& bucket : state.buckets) {
    tell_of_complete();
    if (!bucket.in_flight) continue;
    bucket.work.Wait();
    state.Complete(bucket);
  }
  tell_of_complete();
  state.Reset();
}

std::vector<std::int64_t> GradientReducer::bucket_bytes() const {
  std::vector<std::int64_t> bytes;
  for (const Bucket& bucket : state_->buckets) bytes.push_back(bucket.bytes);
  return bytes;
}

}  // namespace plait::parallel
