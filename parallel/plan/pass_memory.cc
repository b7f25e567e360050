#include "parallel/plan/pass_memory.h"

#include <ATen/ops/ones_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "comm/counting/counted_job.h"
#include "comm/device_mesh.h"
#include "parallel/context/local_batch.h"
#include "parallel/pipeline/split_backward.h"
#include "parallel/plan/meta_kernels.h"
#include "parallel/plan/meta_memory.h"

namespace plait::parallel {
namespace {

// In a run, gradients are moved to flat buffers immediately (parallel/sharding): here they are dropped.
class ForgetGradient final : public torch::autograd::PostAccumulateGradHook {
 public:
  void operator()(const torch::autograd::Variable& parameter) override { parameter.mutable_grad().reset(); }
};

// A part of the model with what its backward needs.
struct Recorded {
  at::Tensor input, output;
  SplitBackward split;
  std::int64_t live = 0;  // when its forward had ended
};

// Follows the allocator from one point to the next.
class Meter {
 public:
  explicit Meter(MetaMemory& memory) : memory_(memory), origin_(memory.live_bytes()) {}
  std::int64_t live() const { return memory_.live_bytes() - origin_; }
  // Of `work`, over what `base` says was there before.
  template <typename Work>
  std::int64_t Peak(std::int64_t base, const Work& work) const {
    memory_.ForgetPeak();
    work();
    return memory_.peak_bytes() - origin_ - base;
  }

 private:
  MetaMemory& memory_;
  std::int64_t origin_;
};

class Measurement {
 public:
  Measurement(models::BlockModel& model, const models::Batch& batch, MetaMemory& memory)
      : model_(model), batch_(batch), meter_(memory) {}

  PassBytes Take(bool splits) {
    Forward();
    splits ? BackwardInTwo() : Backward();
    return bytes_;
  }

 private:
  void Forward() {
    const models::BlockContext context = {.random = batch_.random, .sequence = batch_.sequence};
    models::BlockState state;
    Forward(prologue_, bytes_.prologue, [&] {
      state = model_.Prologue(batch_, context);
      return state.hidden;
    });
    bytes_.hidden = static_cast<std::int64_t>(state.hidden.nbytes());
    Forward(block_, bytes_.block, [&] {
      state.hidden = block_.input = prologue_.output.detach().requires_grad_();
      state = model_.blocks()[0]->Forward(state, context);
      return state.hidden;
    });
    Forward(epilogue_, bytes_.epilogue, [&] {
      state.hidden = epilogue_.input = block_.output.detach().requires_grad_();
      return model_.Epilogue(state, batch_).sum;
    });
  }
  template <typename Part>
  void Forward(Recorded& part, PartBytes& bytes, const Part& run) {
    const std::int64_t before = meter_.live();
    bytes.forward_peak = meter_.Peak(before, [&] { part.output = run(); });
    part.live = meter_.live();
    bytes.kept = part.live - before;
  }

  // The gradient of the input of the part after this one.
  static at::Tensor GradientFor(Recorded& behind) {
    at::Tensor gradient = std::move(behind.input.mutable_grad());
    behind.input.reset();
    return gradient;
  }

  void Backward() {
    Backward(epilogue_, bytes_.epilogue, at::ones_like(epilogue_.output));
    Backward(block_, bytes_.block, GradientFor(epilogue_));
    Backward(prologue_, bytes_.prologue, GradientFor(block_));
  }
  void Backward(Recorded& part, PartBytes& bytes, const at::Tensor& gradient) const {
    const at::Tensor output = std::exchange(part.output, {});
    if (!output.requires_grad()) return;
    bytes.backward_peak = meter_.Peak(part.live, [&] { torch::autograd::backward({output}, {gradient}); });
  }

  void BackwardInTwo() {
    at::Tensor gradient = InputGradient(epilogue_, bytes_.epilogue, at::ones_like(epilogue_.output));
    gradient = InputGradient(block_, bytes_.block, std::move(gradient));
    WeightGradient(epilogue_, bytes_.epilogue);
    WeightGradient(block_, bytes_.block);
    bytes_.prologue.kept_for_weights = bytes_.prologue.kept + bytes_.hidden;
    Backward(prologue_, bytes_.prologue, gradient);
    bytes_.prologue.weight_peak = bytes_.prologue.backward_peak;
  }
  at::Tensor InputGradient(Recorded& part, PartBytes& bytes, at::Tensor gradient) const {
    const std::int64_t behind = meter_.live() - part.live,
                       given = static_cast<std::int64_t>(gradient.nbytes());
    const std::int64_t base = part.live + behind - given;
    at::Tensor of_input;
    bytes.input_peak = meter_.Peak(
        base, [&] { of_input = part.split.InputGradients({part.output}, {gradient}, {part.input})[0]; });
    part.output.reset();
    part.input.reset();
    gradient.reset();
    bytes.kept_for_weights =
        meter_.live() - (base - bytes.kept) - static_cast<std::int64_t>(of_input.nbytes());
    return of_input;
  }
  void WeightGradient(Recorded& part, PartBytes& bytes) const {
    bytes.weight_peak = meter_.Peak(meter_.live(), [&] { part.split.WeightGradients(); });
  }

  models::BlockModel& model_;
  const models::Batch& batch_;
  Meter meter_;
  Recorded prologue_, block_, epilogue_;
  PassBytes bytes_;
};

absl::StatusOr<PassBytes> Measure(const PlannedModel& planned, const PlannedRun& run) {
  MetaMemory& memory = MetaMemory::Install();
  const std::shared_ptr<models::BlockModel> model = planned.make(run.compute_type);
  auto& splittable = dynamic_cast<tensor_parallel::SplittableModel&>(*model);
  const comm::CountedJob job(run.mesh.cp * run.mesh.tp, {{"cp", {run.mesh.cp}}, {"tp", {run.mesh.tp}}});
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh,
                         comm::DeviceMesh::Create(job.World(0), {{"cp", run.mesh.cp}, {"tp", run.mesh.tp}}));
  if (run.mesh.tp > 1) {
    PLAIT_RETURN_IF_ERROR(tensor_parallel::Parallelize(splittable, mesh,
                                                       tensor_parallel::DefaultPlan(splittable, run.mesh.tp),
                                                       {.sequence_parallel = run.sequence_parallel}));
  }
  for (const models::ParameterUnit& unit : model->units()) {
    for (const models::ParameterSpec& p : unit.parameters) {
      if (p.role != models::ParameterRole::kTrained) continue;
      torch::autograd::impl::set_post_acc_grad_hooks(p.tensor, std::make_unique<ForgetGradient>());
    }
  }
  const context_parallel::ContextAxis axis(mesh.axis("cp"), run.context);
  const models::Batch batch = context_parallel::LocalBatch(
      axis, planned.batch(run.micro_batch, run.compute_type), planned.images ? planned.sequence : 0);
  return Measurement(*model, batch, memory).Take(SplitsBackward(run.schedule));
}

}  // namespace

bool SplitsBackward(ScheduleKind schedule) {
  return schedule == ScheduleKind::kZbH1 || schedule == ScheduleKind::kZbv;
}

absl::StatusOr<const PassBytes*> PassMemory::Of(const PlannedRun& run) {
  const Key key = {run.mesh.cp, run.mesh.tp,      run.sequence_parallel, SplitsBackward(run.schedule),
                   run.context, run.compute_type, run.micro_batch};
  const auto found = measured_.find(key);
  if (found != measured_.end()) return &found->second;
  RegisterMetaKernels();
  try {
    PLAIT_ASSIGN_OR_RETURN(const PassBytes bytes, Measure(model_, run));
    return &measured_.emplace(key, bytes).first->second;
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    return absl::UnimplementedError("no memory estimate: " + message.substr(0, message.find('\n')));
  }
}

}  // namespace plait::parallel
