#include "parallel/pipeline/executor.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "comm/gathered_text.h"
#include "parallel/pipeline/simulator.h"

namespace plait::parallel {
namespace {

using models::BlockContext;
using models::BlockState;
using models::LossSum;
using Tensors = std::vector<at::Tensor>;

// Number of actions whose receives are posted: the current one and the next.
constexpr std::size_t kPostedAhead = 2;

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Tensors TensorsOf(const BlockState& state) {
  if (!state.auxiliary_loss.defined()) return {state.hidden};
  return {state.hidden, state.auxiliary_loss};
}

BlockState StateOf(const Tensors& tensors) {
  return {tensors[0], tensors.size() > 1 ? tensors[1] : at::Tensor()};
}

// Without outputs that depend on no parameter: the loss of experts whose gate has none.
void BackwardOf(const Tensors& outputs, const Tensors& gradients) {
  Tensors roots, given;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    given.push_back(gradients[i]);
  }
  if (!roots.empty()) torch::autograd::backward(roots, given);
}

bool IsForward(const Action& action) { return action.kind == ActionKind::kForward; }
bool MakesWeightGradients(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient;
}

// Of the input and of what a context rank has of its sequence: images are whole on all ranks.
InputShape ShapeOf(const models::Batch& batch) {
  InputShape shape = batch.inputs.sizes().vec();
  const at::Tensor& positions = batch.sequence.positions;
  shape.push_back(positions.defined() ? positions.size(0) : -1);
  return shape;
}

// Within a leaf of the sum, a tied parameter's gradients are identified by their order: the epilogue's comes first.
absl::Status CheckReproducible(const Schedule& schedule) {
  const std::vector<int>& ranks = schedule.rank_of_stage;
  bool splits = false;
  for (const std::vector<Action>& actions : schedule.actions) {
    splits = splits || std::any_of(actions.begin(), actions.end(), [](const Action& action) {
               return action.kind == ActionKind::kWeightGradient;
             });
  }
  if (!splits && (ranks.size() == 1 || ranks.front() != ranks.back())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(schedule.name,
                   ": not with reproducible sums; expected 1f1b, gpipe or, on several ranks of pp, "
                   "interleaved"));
}

// Every block once, in order.
absl::Status CheckStages(const std::vector<StageRange>& stages, std::size_t blocks) {
  int next = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageRange& stage = stages[i];
    if (stage.count > 0 && stage.first == next && stage.prologue == (i == 0) &&
        stage.epilogue == (i + 1 == stages.size())) {
      next += stage.count;
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "stage ", i, " has ", stage.count, " blocks from ", stage.first, " on; expected at least one, from ",
        next, " on, the prologue with the first stage and the epilogue with the last one"));
  }
  if (next == static_cast<int>(blocks)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the stages have ", next, " blocks, the model has ", blocks));
}

absl::Status CheckOwn(const comm::Communicator& pp, const Schedule& schedule,
                      const std::vector<StageRange>& stages, std::size_t blocks, bool reproducible) {
  PLAIT_RETURN_IF_ERROR(Simulate(schedule).status());
  if (reproducible) PLAIT_RETURN_IF_ERROR(CheckReproducible(schedule));
  if (schedule.ranks == pp.size() && schedule.rank_of_stage.size() == stages.size()) {
    return CheckStages(stages, blocks);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a schedule of ", schedule.ranks, " ranks and ", schedule.stages(), " stages, but the model has ",
      stages.size(), " stages on ", pp.size(), " ranks of ", pp.name()));
}

// The same on all ranks of pp.
absl::Status Check(const comm::Communicator& pp, const Schedule& schedule,
                   const std::vector<StageRange>& stages, std::size_t blocks, bool reproducible) {
  absl::Status status = CheckOwn(pp, schedule, stages, blocks, reproducible);
  const std::string mine = absl::StrCat(ToText(stages), "\n", ToText(schedule));
  if (comm::BroadcastText(pp, mine) != mine) {
    status.Update(absl::InvalidArgumentError(absl::StrCat(
        "rank ", pp.rank(), " of ", pp.name(), " has another pipeline than rank 0: ", schedule.name, ", ",
        schedule.micro_batches, " micro-batches, ", ToText(stages))));
  }
  return pp.Agree(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PipelineExecutor>> PipelineExecutor::Create(
    DataParallel& engine, models::BlockModel& model, const comm::Communicator& pp, Schedule schedule,
    std::vector<StageRange> stages, PipelineOptions options) {
  PLAIT_RETURN_IF_ERROR(Check(pp, schedule, stages, model.blocks().size(), engine.options().reproducible));
  return std::unique_ptr<PipelineExecutor>(
      new PipelineExecutor(engine, model, pp, std::move(schedule), std::move(stages), std::move(options)));
}

PipelineExecutor::PipelineExecutor(DataParallel& engine, models::BlockModel& model,
                                   const comm::Communicator& pp, Schedule schedule,
                                   std::vector<StageRange> stages, PipelineOptions options)
    : engine_(engine),
      model_(model),
      rank_(pp.rank()),
      schedule_(std::move(schedule)),
      stages_(std::move(stages)),
      options_(std::move(options)),
      messages_(pp, schedule_.rank_of_stage, engine.master_options().device()) {
  int next = 0;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    for (int i = 0; i < stages_[stage].count; ++i) {
      local_.push_back(IsMine(static_cast<int>(stage)) ? next++ : -1);
    }
  }
  PLAIT_CHECK(!options_.solve.forward || stages_.size() == 1)
      << "blocks that run together are on one stage, here are " << stages_.size();
  if (options_.forward) return;
  options_.forward = [this](std::size_t block, const BlockState& input, const BlockContext& context) {
    return model_.blocks()[block]->Forward(input, context);
  };
}

const PipelineMicroBatch& PipelineExecutor::BatchOf(int micro_batch) {
  for (; asked_ <= micro_batch; ++asked_) {
    const std::int64_t begin = NowNs();
    batches_[asked_] = next_(asked_);
    next_ns_ += NowNs() - begin;
  }
  return batches_.at(micro_batch);
}

PipelineStep PipelineExecutor::Run(const NextMicroBatch& next, bool final) {
  next_ = next;
  final_ = final;
  asked_ = 0;
  const std::vector<Action>& actions = schedule_.actions[rank_];
  std::size_t last = actions.size();
  while (last > 0 && !MakesWeightGradients(actions[last - 1])) --last;
  PipelineStep step;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    std::size_t ahead = i;
    const std::int64_t before = next_ns_;
    while (ahead < std::min(i + kPostedAhead, actions.size()) && Post(actions[ahead])) ++ahead;
    step.batch_ns += next_ns_ - before;
    BeginStage(actions[i].stage, BlockBehind(i));
    const std::int64_t begin = NowNs(), waited = messages_.waited_ns();
    Do(actions[i], i + 1 == last, step);
    step.timeline.push_back({actions[i], begin, NowNs(), messages_.waited_ns() - waited});
    messages_.PollSends();
  }
  messages_.WaitForSends();
  batches_.clear();
  final_ = true;
  return step;
}

void PipelineExecutor::BeginStage(int stage, std::ptrdiff_t following) {
  if (options_.solve.forward) {
    return engine_.BeginStage({.first = 0, .count = options_.solve.count, .following = -1});
  }
  const StageRange& range = stages_[stage];
  engine_.BeginStage({.first = static_cast<std::size_t>(local_[range.first]),
                      .count = static_cast<std::size_t>(range.count),
                      .following = following});
}

// The engine's index of the first block that runs after action number `action` of this rank. W is skipped: its blocks
// are held.
std::ptrdiff_t PipelineExecutor::BlockBehind(std::size_t action) const {
  const std::vector<Action>& actions = schedule_.actions[rank_];
  while (++action < actions.size()) {
    if (actions[action].kind == ActionKind::kWeightGradient) continue;
    const StageRange& range = stages_[actions[action].stage];
    return local_[IsForward(actions[action]) ? range.first : range.first + range.count - 1];
  }
  return -1;
}

bool PipelineExecutor::Post(const Action& action) {
  const bool forward = IsForward(action);
  const bool at_end = forward ? action.stage == 0 : action.stage + 1 == schedule_.stages();
  if (at_end || action.kind == ActionKind::kWeightGradient) return true;
  return messages_.Post({forward, action.stage, action.micro_batch},
                        ShapeOf(BatchOf(action.micro_batch).batch));
}

void PipelineExecutor::Do(const Action& action, bool last, PipelineStep& step) {
  IsForward(action) ? Forward(action, step) : Backward(action, last);
  if (MakesWeightGradients(action)) flights_.erase({action.stage, action.micro_batch});
  step.most_in_flight = std::max(step.most_in_flight, static_cast<int>(flights_.size()));
}

void PipelineExecutor::Forward(const Action& action, PipelineStep& step) {
  Flight& flight = flights_[{action.stage, action.micro_batch}];
  const auto loss = [&](const BlockState& state, const models::Batch& batch) {
    const LossSum sum = model_.Epilogue(state, batch);
    step.losses.push_back({sum.sum.detach(), sum.count});
    return sum.sum;
  };
  ForwardStage(action.stage, action.micro_batch, loss, flight);
}

// Whether the graph is cut after the prologue, so that one rank sums the gradients of a tied parameter as two stages
// do: first over the leaves of each end.
bool PipelineExecutor::CutsPrologue(const StageRange& range) const {
  return engine_.options().reproducible && range.prologue && range.epilogue && at::GradMode::is_enabled();
}

BlockState PipelineExecutor::RunBlocks(const StageRange& range, BlockState state,
                                       const models::Batch& batch) {
  BlockContext context = {.final = final_, .random = batch.random, .sequence = batch.sequence};
  if (const BlockSolve& solve = options_.solve; solve.forward) {
    const auto forward = [&](const BlockState& input) { return solve.forward(input, context); };
    return solve.count == 0 ? forward(state) : engine_.Run(0, solve.count, forward, state);
  }
  for (int block = range.first; block < range.first + range.count; ++block) {
    context.step = block;
    const auto forward = [&](const BlockState& input) {
      return options_.forward(static_cast<std::size_t>(block), input, context);
    };
    state = engine_.Run(static_cast<std::size_t>(local_[block]), forward, state);
  }
  return state;
}

void PipelineExecutor::ForwardStage(int stage, int micro_batch, const End& end, Flight& flight) {
  const StageRange& range = stages_[stage];
  const models::Batch& batch = BatchOf(micro_batch).batch;
  if (!range.prologue) {
    flight.inputs = messages_.Take({true, stage, micro_batch}, ShapeOf(batch));
    for (at::Tensor& input : flight.inputs) input.requires_grad_(at::GradMode::is_enabled());
  }
  engine_.Forward([&] {
    BlockState state;
    if (range.prologue) {
      state = model_.Prologue(batch, {.final = final_, .random = batch.random, .sequence = batch.sequence});
      flight.inputs = TensorsOf(state);
      if (CutsPrologue(range) && state.hidden.requires_grad()) {
        flight.embedded = flight.inputs;
        for (at::Tensor& input : flight.inputs) input = input.detach().requires_grad_();
        state = StateOf(flight.inputs);
      }
    } else {
      state = StateOf(flight.inputs);
    }
    state = RunBlocks(range, std::move(state), batch);
    flight.outputs = TensorsOf(state);
    if (!range.epilogue) return state.hidden;
    flight.outputs = {end(state, batch)};
    return flight.outputs[0];
  });
  if (range.epilogue) return;
  Tensors sent;
  for (const at::Tensor& output : flight.outputs) sent.push_back(output.detach());
  messages_.Send({true, stage + 1, micro_batch}, ShapeOf(batch), std::move(sent));
}

Tensors PipelineExecutor::GradientsOfOutputs(const Action& action, const Flight& flight) {
  const PipelineMicroBatch& micro = BatchOf(action.micro_batch);
  if (!stages_[action.stage].epilogue) {
    return messages_.Take({false, action.stage, action.micro_batch}, ShapeOf(micro.batch));
  }
  const at::Tensor& sum = flight.outputs[0];
  return {at::full(sum.sizes(), micro.loss_factor, sum.options().requires_grad(false))};
}

void PipelineExecutor::SendGradients(const Action& action, Tensors gradients, const Flight& flight) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(flight.inputs[i]);
  }
  messages_.Send({false, action.stage - 1, action.micro_batch}, ShapeOf(BatchOf(action.micro_batch).batch),
                 std::move(gradients));
}

void PipelineExecutor::Backward(const Action& action, bool last) {
  Flight& flight = flights_.at({action.stage, action.micro_batch});
  const StageRange& range = stages_[action.stage];
  const bool first = action.stage == 0;
  const DataParallel::MicroBatch micro = {
      .last = last,
      .reduce_every_micro_batch = options_.reduce_every_micro_batch && MakesWeightGradients(action),
      .leaf = action.micro_batch};
  if (action.kind == ActionKind::kWeightGradient) {
    engine_.Backward([&] { flight.split.WeightGradients(); }, micro);
    return;
  }
  const Tensors given = GradientsOfOutputs(action, flight);
  Tensors of_inputs;
  if (action.kind == ActionKind::kInputGradient) {
    flight.hold =
        engine_.Hold(static_cast<std::size_t>(local_[range.first]), static_cast<std::size_t>(range.count));
    engine_.Backward([&] { of_inputs = flight.split.InputGradients(flight.outputs, given, flight.inputs); },
                     micro);
  } else {
    const auto backward = [&] {
      BackwardOf(flight.outputs, given);
      for (std::size_t i = 0; i < flight.embedded.size(); ++i) {
        const at::Tensor& gradient = flight.inputs[i].grad();
        if (gradient.defined()) torch::autograd::backward({flight.embedded[i]}, {gradient});
      }
    };
    engine_.Backward(backward, micro);
    for (const at::Tensor& input : flight.inputs) of_inputs.push_back(first ? at::Tensor() : input.grad());
  }
  if (!first) SendGradients(action, std::move(of_inputs), flight);
  flight.outputs.clear();
  flight.inputs.clear();
  flight.embedded.clear();
}

void PipelineExecutor::ForwardAlone(const models::Batch& batch, const End& end) {
  const at::NoGradGuard no_grad;
  next_ = [&batch](int) { return PipelineMicroBatch{batch}; };
  asked_ = 0;
  for (int stage = 0; stage < schedule_.stages(); ++stage) {
    Flight flight;
    if (!IsMine(stage)) continue;
    BeginStage(stage, /*following=*/-1);
    ForwardStage(stage, /*micro_batch=*/0, end, flight);
  }
  messages_.WaitForSends();
  batches_.clear();
}

LossSum PipelineExecutor::Loss(const models::Batch& batch) {
  LossSum loss = {at::zeros({}, engine_.master_options()), 0};
  ForwardAlone(batch, [&](const BlockState& state, const models::Batch& of_stage) {
    loss = model_.Epilogue(state, of_stage);
    return loss.sum;
  });
  return loss;
}

at::Tensor PipelineExecutor::Output(const models::Batch& batch) {
  at::Tensor output;
  ForwardAlone(batch, [&](const BlockState& state, const models::Batch&) {
    output = model_.Output(state);
    return output;
  });
  return output;
}

}  // namespace plait::parallel
