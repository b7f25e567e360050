#include "mgrit/layer_parallel/engine.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "comm/tensor_collectives.h"

namespace plait::mgrit {
namespace {

// Size of the pool of solves: for a training batch, a last smaller batch, and test batches.
constexpr std::size_t kKeptSolves = 3;

const LayerParallelOptions& Checked(const LayerParallelOptions& options, std::int64_t steps) {
  const absl::Status fits = LayerParallel::Check(options, steps);
  TORCH_CHECK(fits.ok(), "LayerParallel: ", std::string(fits.message()));
  return options;
}

// A flat tensor for all of `parameters`; undefined if they have no elements.
at::Tensor EmptyFlat(at::TensorList parameters) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : parameters) {
    TORCH_CHECK(parameter.dtype() == parameters[0].dtype() && parameter.device() == parameters[0].device(),
                "LayerParallel: shared parameters and conditioning must have one type and device, are ",
                parameters[0].toString(), " and ", parameter.toString());
    count += parameter.numel();
  }
  return count == 0 ? at::Tensor() : at::empty({count}, parameters[0].options().requires_grad(false));
}

std::vector<at::Tensor> ViewsOf(const at::Tensor& flat, at::TensorList parameters) {
  std::vector<at::Tensor> views;
  std::int64_t offset = 0;
  for (const at::Tensor& parameter : parameters) {
    if (!flat.defined()) {
      views.push_back(at::empty_like(parameter));
      continue;
    }
    views.push_back(flat.narrow(0, offset, parameter.numel()).view(parameter.sizes()));
    offset += parameter.numel();
  }
  return views;
}

// Of the serial sweep that has taken the place of a diverged solve.
Solution Marked(Solution serial) {
  serial.converged = false;
  serial.diverged = true;
  return serial;
}

}  // namespace

LayerParallel::Engine::Engine(comm::Communicator communicator, std::shared_ptr<TensorStep> step,
                              std::int64_t steps, double final_time, const LayerParallelOptions& options)
    : communicator_(std::move(communicator)),
      step_(std::make_shared<TimedStep>(std::move(step))),
      time_{.start = 0, .stop = final_time, .steps = steps},
      options_(Checked(options, steps)),
      partition_(Partition::OfWholeIntervals(steps, communicator_.size(), options.forward)) {
  Divide();
  step_->SetOwnSteps(first_step(), last_step());
}

void LayerParallel::Engine::Divide() {
  position_ = partition_.PositionOf(communicator_.rank());
  std::vector<std::int64_t> bounds;
  std::vector<int> owners;
  const std::int64_t interval = LeafBegin(1);
  for (int p = 0; p < partition_.positions(); ++p) {
    bounds.push_back((partition_.first_step(p) + interval - 1) / interval);
    owners.push_back(partition_.RankAt(p));
  }
  bounds.push_back((time_.steps + interval - 1) / interval);
  first_leaf_ = bounds[position_];
  last_leaf_ = bounds[position_ + 1];
  gradient_sum_ = std::make_unique<TreeSum>(std::move(bounds), std::move(owners), communicator_);
}

std::int64_t LayerParallel::Engine::LeafBegin(std::int64_t leaf) const {
  const std::int64_t interval = options_.forward.max_levels > 1 ? AtLevel(options_.forward.cfactors, 0) : 1;
  return std::min(leaf * interval, time_.steps);
}

std::unique_ptr<NetworkSolve> LayerParallel::Engine::Take(const at::Tensor& u_0, bool recorded) {
  if (recorded && continues_) return TakeKept(u_0);
  const auto fits = [&](const auto& solve) { return solve->Fits(u_0, recorded); };
  const auto found = std::find_if(free_.rbegin(), free_.rend(), fits);
  std::unique_ptr<NetworkSolve> solve;
  if (found == free_.rend()) {
    solve = std::make_unique<NetworkSolve>(*step_, time_, options_, communicator_, partition_,
                                           u_0.detach().contiguous(), recorded);
  } else {
    solve = std::move(*found);
    free_.erase(std::next(found).base());
  }
  ++taken_;
  solve->set_iterations(options_.forward.max_iterations, options_.backward.max_iterations);
  return solve;
}

std::unique_ptr<NetworkSolve> LayerParallel::Engine::TakeKept(const at::Tensor& u_0) {
  TORCH_CHECK(
      kept_.front()->Fits(u_0, /*recorded=*/true),
      "LayerParallel: a pass that continues a kept one has an input of another shape, type or device");
  std::unique_ptr<NetworkSolve> solve = std::move(kept_.front());
  kept_.pop_front();
  continues_ = !kept_.empty();
  ++taken_;
  solve->set_continues(true);
  return solve;
}

void LayerParallel::Engine::KeepPasses() {
  kept_.clear();
  keeps_ = true;
  continues_ = false;
}

void LayerParallel::Engine::ContinueKeptPasses() {
  keeps_ = false;
  continues_ = !kept_.empty();
}

void LayerParallel::Engine::Return(std::unique_ptr<NetworkSolve> solve) {
  --taken_;
  solve->Clear();
  solve->set_continues(false);
  if (keeps_ && solve->recorded()) return kept_.push_back(std::move(solve));
  free_.push_back(std::move(solve));
  if (free_.size() > kKeptSolves) free_.erase(free_.begin());
}

at::Tensor LayerParallel::Engine::FromOwnerOf(std::int64_t step, const at::Tensor& like,
                                              const at::Tensor* mine) {
  at::Tensor state = mine != nullptr ? mine->clone() : at::empty(like.sizes(), like.options());
  if (communicator_.size() > 1) {
    comm::Broadcast(communicator_, state, partition_.RankAt(partition_.OwnerPosition(step)));
  }
  return state;
}

// Residual norms are the same on all ranks, so all ranks take the same branch.
at::Tensor LayerParallel::Engine::Forward(NetworkSolve& solve, const at::Tensor& u_0,
                                          const Surroundings& surroundings) {
  const at::NoGradGuard no_grad;
  const models::BlockContext& context = surroundings.context;
  step_->SetConditioning(surroundings.conditioning);
  const at::Tensor input = u_0.detach().contiguous();
  last_forward_ = solve.Forward(input, context, propagation_);
  if (last_forward_.diverged) {
    ++diverged_solves_;
    last_forward_ = Marked(solve.Forward(input, context, Propagation::kSerial));
  }
  const bool owns_end = position_ == partition_.OwnerPosition(time_.steps - 1);
  return FromOwnerOf(time_.steps - 1, input, owns_end ? &solve.StateAt(time_.steps) : nullptr);
}

std::vector<at::Tensor> LayerParallel::Engine::Backward(NetworkSolve& solve, const at::Tensor& lambda,
                                                        bool wants_input_gradient,
                                                        const std::vector<at::Tensor>& leaves) {
  const at::NoGradGuard no_grad;
  const at::Tensor terminal = lambda.detach().contiguous();
  last_backward_ = solve.Adjoint(terminal, propagation_);
  if (last_backward_.diverged) {
    ++diverged_solves_;
    last_backward_ = Marked(solve.Adjoint(terminal, Propagation::kSerial));
  }
  at::Tensor input_gradient;
  if (wants_input_gradient) {
    const bool owns_start = position_ == partition_.OwnerPosition(0);
    input_gradient = FromOwnerOf(0, terminal, owns_start ? &solve.AdjointAt(0) : nullptr);
  }
  std::vector<at::Tensor> gradients = Gradients(solve, leaves);
  gradients.insert(gradients.begin(), input_gradient);
  return gradients;
}

// One term per C-interval. Gradients of conditioning and shared parameters are summed by the tree; those of parameters
// of own steps are accumulated locally.
std::vector<at::Tensor> LayerParallel::Engine::Gradients(NetworkSolve& solve,
                                                         const std::vector<at::Tensor>& leaves) {
  const at::TensorList all(leaves);
  const std::size_t conditioning = leaves.size() - step_->Parameters().size();
  const at::TensorList shared =
      all.slice(0, conditioning + static_cast<std::size_t>(step_->SharedParameters()));
  at::Tensor flat = EmptyFlat(shared);
  std::vector<at::Tensor> own;
  for (const at::Tensor& parameter : all.slice(shared.size())) {
    own.push_back(at::zeros_like(parameter, at::MemoryFormat::Contiguous));
  }
  const auto state_at = [&](std::int64_t point) -> const at::Tensor& { return solve.StateAt(point); };
  const auto adjoint_at = [&](std::int64_t point) -> const at::Tensor& { return solve.AdjointAt(point); };
  const TreeSum::Term term = [&](std::int64_t leaf, at::Tensor& sum) {
    std::vector<at::Tensor> gradients = ViewsOf(sum, shared);
    gradients.insert(gradients.end(), own.begin(), own.end());
    step_->AddGradients(solve.FineSteps(LeafBegin(leaf), LeafBegin(leaf + 1)), state_at, adjoint_at,
                        absl::MakeSpan(gradients));
  };
  if (flat.defined()) {
    gradient_sum_->Compute(term, flat);
  } else {
    for (std::int64_t leaf = first_leaf_; leaf < last_leaf_; ++leaf) term(leaf, flat);
  }
  std::vector<at::Tensor> gradients = ViewsOf(flat, shared);
  gradients.insert(gradients.end(), own.begin(), own.end());
  return gradients;
}

// The blocks of own steps exist already, so the partition must not change.
absl::Status LayerParallel::Engine::CheckOptions(const LayerParallelOptions& options) const {
  if (taken_ > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        taken_, " recorded forward passes wait for their backward: options can change behind it"));
  }
  PLAIT_RETURN_IF_ERROR(LayerParallel::Check(options, time_.steps));
  const Partition other = Partition::OfWholeIntervals(time_.steps, communicator_.size(), options.forward);
  for (int p = 0; p < partition_.positions(); ++p) {
    if (other.first_step(p) != partition_.first_step(p)) {
      return absl::InvalidArgumentError(absl::StrCat("the factors give rank ", partition_.RankAt(p),
                                                     " other steps: from ", other.first_step(p),
                                                     " instead of ", partition_.first_step(p), " on"));
    }
  }
  return absl::OkStatus();
}

void LayerParallel::Engine::SetOptions(const LayerParallelOptions& options) {
  const absl::Status fits = CheckOptions(options);
  TORCH_CHECK(fits.ok(), "LayerParallel: ", std::string(fits.message()));
  options_ = options;
  free_.clear();
  kept_.clear();
  continues_ = false;
  Divide();
}

void LayerParallel::Engine::set_iterations(int forward, int backward) {
  PLAIT_CHECK(forward >= 1 && backward >= 1)
      << "at least 1 iteration is needed, got " << forward << " and " << backward;
  options_.forward.max_iterations = forward;
  options_.backward.max_iterations = backward;
}

}  // namespace plait::mgrit
