#include "mgrit/layer_parallel/block_step.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/conditioned_block.h"

namespace plait::mgrit {
namespace {

// Length of a digest: the step, the number of elements, and eight of the elements.
constexpr std::int64_t kDigest = 10;

bool SameValues(const double* a, const double* b) { return std::equal(a + 1, a + kDigest, b + 1); }

}  // namespace

struct BlockStep::Graphs final : TensorStep::Tape {
  void Clear() override {
    by_level.clear();
    had_final.clear();
    conditioning.clear();
  }
  std::vector<std::vector<Recorded>> by_level;  // then by own fine step at the left end
  std::vector<char> had_final;                  // by own step: whether its final call has been made
  models::BlockContext context;
  std::vector<at::Tensor> conditioning;
};

BlockStep::BlockStep(Factory make_block, TiedParameters tied, Recomputes recomputes)
    : make_block_(std::move(make_block)), recomputes_(std::move(recomputes)), tied_(std::move(tied)) {}
BlockStep::BlockStep(std::shared_ptr<models::Block> shared, Recomputes recomputes)
    : recomputes_(std::move(recomputes)), shared_(std::move(shared)) {}

void BlockStep::SetOwnSteps(std::int64_t first, std::int64_t last) {
  first_ = first;
  last_ = last;
  parameters_.clear();
  blocks_.clear();
  if (shared_ != nullptr) {
    AddBlock(0, shared_);
    shared_parameters_ = static_cast<std::int64_t>(parameters_.size());
    return;
  }
  for (const auto& [name, tensor] : tied_) parameters_.push_back(tensor);
  shared_parameters_ = static_cast<std::int64_t>(parameters_.size());
  for (std::int64_t step = first; step < last; ++step) AddBlock(step, make_block_(step));
}

void BlockStep::AddBlock(std::int64_t step, std::shared_ptr<models::Block> block) {
  const std::size_t of_steps_before = parameters_.size();
  OwnBlock own{std::move(block), {}, {}};
  for (const at::Tensor& parameter : own.block->Parameters()) {
    const auto is_same = [&](const at::Tensor& other) { return other.is_same(parameter); };
    if (std::any_of(own.parameters.begin(), own.parameters.end(), is_same)) continue;
    const auto found = std::find_if(parameters_.begin(), parameters_.end(), is_same);
    const std::size_t slot = found - parameters_.begin();
    if (slot == parameters_.size()) parameters_.push_back(parameter);
    if (slot >= static_cast<std::size_t>(shared_parameters_) && slot < of_steps_before) {
      status_ = absl::InvalidArgumentError(absl::StrCat(
          "LayerParallel: a parameter of the block of step ", step, ", number ", own.slots.size(),
          " of its list, is also one of an earlier step's block; name it among the tied "
          "parameters, or use the constructor that takes one block for all steps"));
    }
    own.parameters.push_back(parameter);
    own.slots.push_back(slot);
  }
  blocks_.push_back(std::move(own));
}

std::vector<double> BlockStep::Digest(std::int64_t step, const at::Tensor& parameter) {
  std::vector<double> digest = {static_cast<double>(step), static_cast<double>(parameter.numel())};
  const at::Tensor values = parameter.detach().flatten();
  for (std::int64_t i = 2; i < kDigest; ++i) {
    digest.push_back(values[(i - 2) * (values.numel() - 1) / (kDigest - 3)].item<double>());
  }
  return digest;
}

std::vector<double> BlockStep::OwnDigests() const {
  std::vector<double> digests;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    for (std::size_t p = 0; p < blocks_[i].parameters.size(); ++p) {
      const at::Tensor& parameter = blocks_[i].parameters[p];
      const bool tied = blocks_[i].slots[p] < static_cast<std::size_t>(shared_parameters_);
      if (tied || parameter.is_meta() || parameter.numel() == 0) continue;
      const std::vector<double> digest = Digest(first_ + static_cast<std::int64_t>(i), parameter);
      const bool constant = std::equal(digest.begin() + 3, digest.end(), digest.begin() + 2);
      if (!constant) digests.insert(digests.end(), digest.begin(), digest.end());
    }
  }
  return digests;
}

absl::Status BlockStep::CheckOtherRanks(const comm::Communicator& communicator) const {
  if (shared_ != nullptr || communicator.size() == 1) return absl::OkStatus();
  std::vector<double> mine = OwnDigests();
  const std::size_t own = mine.size();
  auto longest = static_cast<std::int64_t>(own);
  communicator.AllReduce(comm::BufferOf(absl::MakeSpan(&longest, 1)), comm::ReduceOp::kMax);
  mine.resize(static_cast<std::size_t>(longest), -1);  // no step
  std::vector<double> all(mine.size() * static_cast<std::size_t>(communicator.size()));
  communicator.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(mine)), comm::BufferOf(absl::MakeSpan(all)));
  for (std::size_t other = 0; other < all.size(); other += kDigest) {
    const auto step = static_cast<std::int64_t>(all[other]);
    if (step < 0 || (first_ <= step && step < last_)) continue;
    for (std::size_t i = 0; i < own; i += kDigest) {
      if (!SameValues(&all[other], &mine[i])) continue;
      if (absl::Status same = CheckStep(step); !same.ok()) return same;
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status BlockStep::CheckStep(std::int64_t step) const {
  for (const at::Tensor& parameter : make_block_(step)->Parameters()) {
    for (const OwnBlock& own : blocks_) {
      for (std::size_t p = 0; p < own.parameters.size(); ++p) {
        if (own.slots[p] < static_cast<std::size_t>(shared_parameters_)) continue;
        if (!own.parameters[p].is_same(parameter)) continue;
        return absl::InvalidArgumentError(absl::StrCat("LayerParallel: a parameter of the block of step ",
                                                       first_ + (&own - blocks_.data()), ", number ", p,
                                                       " of its list, is also one of step ", step,
                                                       ", which another rank takes; name it among the tied "
                                                       "parameters, or use the constructor that takes "
                                                       "one block for all steps"));
      }
    }
  }
  return absl::OkStatus();
}

const BlockStep::OwnBlock& BlockStep::BlockOf(std::int64_t step) const {
  if (shared_ != nullptr) return blocks_[0];
  PLAIT_CHECK(first_ <= step && step < last_)
      << "step " << step << " is not one of " << first_ << " ... " << last_ - 1;
  return blocks_[step - first_];
}

std::unique_ptr<TensorStep::Tape> BlockStep::NewTape() const { return std::make_unique<Graphs>(); }
void BlockStep::Begin(Tape* tape, const models::BlockContext& context) {
  graphs_ = static_cast<Graphs*>(tape);
  context_ = context;
  if (graphs_ == nullptr) return;
  for (at::Tensor& tensor : conditioning_) tensor = tensor.detach().requires_grad_(tensor.requires_grad());
  graphs_->context = context;
  graphs_->conditioning = conditioning_;
}

void BlockStep::BeginAdjoint(Tape& tape) {
  graphs_ = static_cast<Graphs*>(&tape);
  context_ = graphs_->context;
  conditioning_ = graphs_->conditioning;
}

models::BlockContext BlockStep::ContextOf(const StepInterval& interval, bool final) const {
  models::BlockContext context = context_;
  context.dt = interval.dt();
  context.level = interval.level;
  context.step = interval.fine_start;
  context.final = final && context_.final;
  return context;
}

namespace {

void CheckResult(std::int64_t step, const at::Tensor& u, const at::Tensor& out) {
  TORCH_CHECK(out.sizes() == u.sizes() && out.scalar_type() == u.scalar_type(),
              "LayerParallel: the block of step ", step, " turns ", u.sizes(), " of ", u.scalar_type(),
              " into ", out.sizes(), " of ", out.scalar_type(), "; a step must keep shape and type");
}

// Returns the result of a block as a contiguous tensor that does not alias u.
at::Tensor AsState(const at::Tensor& result, const at::Tensor& u) {
  return result.is_alias_of(u) ? result.clone(at::MemoryFormat::Contiguous) : result.contiguous();
}

}  // namespace

at::Tensor BlockStep::Call(std::int64_t step, const StepInterval& interval, bool final,
                           const at::Tensor& u) const {
  models::Block& block = *BlockOf(step).block;
  const models::BlockContext context = ContextOf(interval, final);
  auto* const conditioned = conditioning_.empty() ? nullptr : dynamic_cast<models::ConditionedBlock*>(&block);
  const models::BlockState out = conditioned != nullptr
                                     ? conditioned->ForwardConditioned({u}, conditioning_, context)
                                     : block.Forward({u}, context);
  TORCH_CHECK(!out.auxiliary_loss.defined(), "LayerParallel: the block of step ", step,
              " returns an auxiliary loss; blocks of a layer-parallel network cannot have one");
  CheckResult(step, u, out.hidden);
  return out.hidden;
}

bool BlockStep::TakeFinal(std::int64_t step) {
  graphs_->had_final.resize(static_cast<std::size_t>(last_ - first_), 0);
  return std::exchange(graphs_->had_final[static_cast<std::size_t>(step - first_)], 1) == 0;
}

// On level 0, the call at the final state is recorded.
void BlockStep::Forward(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  if (Records(interval) && !IsRecomputed(interval.fine_start)) {
    out = AsState(RecordedAt(interval, u).out.detach(), u);
    return;
  }
  const at::NoGradGuard no_grad;
  const bool final = Records(interval) && TakeFinal(interval.fine_start);
  out = AsState(Call(interval.fine_stop - 1, interval, final, u), u);
}

bool BlockStep::PrefersMany() const {
  const at::Device device = parameters_.empty() ? at::Device(at::kCPU) : parameters_[0].device();
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const OwnBlock& own) {
    const auto* const stackable = dynamic_cast<const models::StackableBlock*>(own.block.get());
    return stackable != nullptr && stackable->PrefersMany(device);
  });
}

std::vector<at::Tensor> BlockStep::CallMany(absl::Span<const models::BlockCall> calls) const {
  if (calls.size() < 2 || !conditioning_.empty()) return {};
  auto* const stackable = dynamic_cast<models::StackableBlock*>(calls[0].block);
  if (stackable == nullptr) return {};
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> results = stackable->ForwardMany(calls);
  TORCH_CHECK(results.empty() || results.size() == calls.size(), "LayerParallel: ForwardMany of ",
              calls.size(), " calls gave ", results.size(), " results");
  return results;
}

// Batches blocks of the same type. Types are processed in the order of their first call, which is the same on all ranks
// that share tensor-parallel layers.
void BlockStep::ForwardMany(absl::Span<const Task> tasks) {
  struct Kind {
    std::vector<const Task*> tasks;
    std::vector<models::BlockCall> calls;
  };
  std::vector<Kind> kinds;
  for (const Task& task : tasks) {
    if (Records(task.interval)) {
      Forward(task.interval, *task.u, *task.out);
      continue;
    }
    models::Block& block = *BlockOf(task.interval.fine_stop - 1).block;
    const auto is_it = [&](const Kind& kind) {
      const models::Block& other = *kind.calls[0].block;
      return typeid(other) == typeid(block);
    };
    auto kind = std::find_if(kinds.begin(), kinds.end(), is_it);
    if (kind == kinds.end()) kind = kinds.emplace(kinds.end());
    kind->tasks.push_back(&task);
    kind->calls.push_back({&block, *task.u, ContextOf(task.interval, /*final=*/false)});
  }
  for (const Kind& kind : kinds) TakeTogether(kind.tasks, CallMany(kind.calls));
}

void BlockStep::TakeTogether(absl::Span<const Task* const> tasks, const std::vector<at::Tensor>& results) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = *tasks[i];
    if (results.empty()) {
      Forward(task.interval, *task.u, *task.out);
      continue;
    }
    CheckResult(task.interval.fine_stop - 1, *task.u, results[i]);
    // Results may be views of one tensor: variable_data gives each its own version counter.
    *task.out = AsState(results[i], *task.u).variable_data();
  }
}

void BlockStep::EndForward(absl::Span<const StepInterval> steps, const TensorAt& u) {
  for (const StepInterval& interval : steps) {
    const std::int64_t step = interval.fine_start;
    if (!IsRecomputed(step)) {
      RecordedAt(interval, u(step));
    } else if (TakeFinal(step)) {
      const at::NoGradGuard no_grad;
      Call(step, interval, /*final=*/true, u(step));
    }
  }
}

BlockStep::Recorded BlockStep::RecordedAt(const StepInterval& interval, const at::Tensor& u) {
  const std::size_t level = static_cast<std::size_t>(interval.level);
  if (graphs_->by_level.size() <= level) graphs_->by_level.resize(level + 1);
  graphs_->by_level[level].resize(last_ - first_);
  Recorded& kept = graphs_->by_level[level][interval.fine_start - first_];
  if (kept.u.defined()) return kept;
  const at::AutoGradMode record(true);
  Recorded recorded;
  recorded.u = u.detach().requires_grad_(true);
  const bool final = level == 0 && TakeFinal(interval.fine_start);
  recorded.out = Call(interval.fine_start, interval, final, recorded.u);
  if (!IsRecomputed(interval.fine_start)) kept = recorded;
  return recorded;
}

void BlockStep::Adjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                        at::Tensor& out) {
  const Recorded recorded = RecordedAt(interval, u);
  const auto gradients = torch::autograd::grad({recorded.out}, {recorded.u}, {lambda}, /*retain_graph=*/true);
  out = AsState(gradients[0], lambda);  // of a step u + b it is lambda itself
}

void BlockStep::AddGradients(absl::Span<const StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                             absl::Span<at::Tensor> gradients) {
  for (const StepInterval& interval : steps) {
    const std::int64_t step = interval.fine_start;
    const Recorded recorded = RecordedAt(interval, u(step));
    const OwnBlock& own = BlockOf(step);
    std::vector<at::Tensor> trained;
    std::vector<std::size_t> slots;
    for (const at::Tensor& tensor : conditioning_) {
      if (!tensor.requires_grad()) continue;
      slots.push_back(trained.size());
      trained.push_back(tensor);
    }
    const std::size_t first_parameter = trained.size();
    for (std::size_t p = 0; p < own.parameters.size(); ++p) {
      if (!own.parameters[p].requires_grad()) continue;
      trained.push_back(own.parameters[p]);
      slots.push_back(first_parameter + own.slots[p]);
    }
    if (trained.empty()) continue;
    const auto parts =
        torch::autograd::grad({recorded.out}, trained, {lambda(step + 1)}, /*retain_graph=*/true,
                              /*create_graph=*/false, /*allow_unused=*/true);
    const at::NoGradGuard no_grad;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (parts[p].defined()) gradients[slots[p]].add_(parts[p]);
    }
  }
}

}  // namespace plait::mgrit
