// Idle time of pipeline schedules, measured from the executor's timeline, beside the formula of each. Blocks sleep
// instead of computing, so that ranks that share cores do not disturb each other: F, I and W take --action_ms each.
//
//   mpirun -n 4 bazel-bin/tests/benchmarks/pipeline_bubble --micro_batches=8
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "base/status_macros.h"
#include "comm/device_mesh.h"
#include "comm/session_main.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/pipeline/executor.h"
#include "parallel/pipeline/simulator.h"

ABSL_FLAG(int, micro_batches, 8, "of a step");
ABSL_FLAG(double, action_ms, 100, "milliseconds of a forward pass, an input gradient and a weight gradient");
ABSL_FLAG(int, steps, 5, "steps");

namespace plait {
namespace {

using models::BlockState;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void Sleep(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

// x + weight, slowly.
struct SlowSum : torch::autograd::Function<SlowSum> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double milliseconds) {
    context->saved_data["milliseconds"] = milliseconds;
    Sleep(milliseconds);
    return x + weight;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const double milliseconds = context->saved_data["milliseconds"].toDouble();
    variable_list of_inputs(3);
    for (const std::size_t input : {0, 1}) {
      if (!context->needs_input_grad(input)) continue;
      Sleep(milliseconds);
      of_inputs[input] = gradients[0];
    }
    return of_inputs;
  }
};

class SlowBlock final : public models::Block {
 public:
  explicit SlowBlock(double milliseconds) : milliseconds_(milliseconds) {}
  BlockState Forward(const BlockState& input, const models::BlockContext&) override {
    return {SlowSum::apply(input.hidden, weight, milliseconds_)};
  }
  std::vector<at::Tensor> Parameters() const override { return {weight}; }
  at::Tensor weight = at::ones({4}).requires_grad_(true);

 private:
  double milliseconds_;
};

// `stages` blocks, and an opening parameter, so that the first stage has input gradients too.
class SlowModel final : public models::BlockModel {
 public:
  SlowModel(int stages, double milliseconds) {
    for (int i = 0; i < stages; ++i) blocks_.push_back(std::make_shared<SlowBlock>(milliseconds));
  }
  BlockState Prologue(const models::Batch& batch, const models::BlockContext&) override {
    return {batch.inputs * opening_};
  }
  const std::vector<std::shared_ptr<models::Block>>& blocks() const override { return blocks_; }
  at::Tensor Output(const BlockState& state) override { return state.hidden; }
  models::LossSum Epilogue(const BlockState& state, const models::Batch&) override {
    return {state.hidden.sum(), state.hidden.size(0)};
  }
  std::vector<models::ParameterUnit> units() const override {
    std::vector<models::ParameterUnit> units = {models::MakeUnit("root", {{"opening", opening_}})};
    units[0].parameters[0].used_by = models::UsedBy::kPrologue;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::string name = "block." + std::to_string(i);
      units.push_back(
          models::MakeUnit(name, {{name + ".weight", blocks_[i]->Parameters()[0]}}, static_cast<int>(i)));
    }
    return units;
  }
  void ResetParameters(std::size_t) override {}
  void SetTraining(bool) override {}
  std::string Description() const override { return "SlowModel"; }

 private:
  at::Tensor opening_ = at::ones({4}).requires_grad_(true);
  std::vector<std::shared_ptr<models::Block>> blocks_;
};

// 1 - work / span of the rank whose span is longest. A span begins with work, as the formula's does: a rank's wait for
// the first micro-batch is not part of it.
double BubbleOf(const parallel::PipelineStep& step, const comm::Communicator& world) {
  const parallel::ActionTime& first = step.timeline.front();
  double span = 1e-9 * static_cast<double>(step.timeline.back().end_ns - first.begin_ns - first.waited_ns);
  double work = 0;
  for (const parallel::ActionTime& time : step.timeline) {
    work += 1e-9 * static_cast<double>(time.end_ns - time.begin_ns - time.waited_ns);
  }
  double longest = span;
  world.AllReduce(comm::BufferOf(absl::MakeSpan(&longest, 1)), comm::ReduceOp::kMax);
  double bubble = span == longest ? 1 - work / span : 0;
  world.AllReduce(comm::BufferOf(absl::MakeSpan(&bubble, 1)), comm::ReduceOp::kMax);
  return bubble;
}

absl::Status Measure(parallel::ScheduleKind kind, const comm::Communicator& world) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::Schedule schedule,
                         parallel::MakeSchedule(kind, {.ranks = world.size(),
                                                       .micro_batches = absl::GetFlag(FLAGS_micro_batches)}));
  SlowModel model(schedule.stages(), absl::GetFlag(FLAGS_action_ms) / schedule.chunks);
  PLAIT_ASSIGN_OR_RETURN(const auto stages, parallel::SplitBlocks(parallel::CostsByParameters(model.units()),
                                                                  schedule.stages()));
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh,
                         comm::DeviceMesh::Create(world, {{"pp", world.size()}}));
  std::vector<models::ParameterUnit> units;
  for (const auto& [unit, index] :
       parallel::UnitsOfRank(model.units(), stages, schedule.rank_of_stage, world.rank())) {
    if (!unit.parameters.empty()) units.push_back(unit);
  }
  PLAIT_ASSIGN_OR_RETURN(const auto engine, parallel::DataParallel::Create(mesh, units, {}));
  parallel::ShardedOptimizer optimizer(*engine, {});
  PLAIT_ASSIGN_OR_RETURN(const auto pipeline,
                         parallel::PipelineExecutor::Create(*engine, model, world, schedule, stages));
  double least = 1;
  for (int step = 0; step < absl::GetFlag(FLAGS_steps); ++step) {
    least = std::min(least, BubbleOf(pipeline->Run([](int) {
                       return parallel::PipelineMicroBatch{{.inputs = at::ones({2, 4}), .targets = {}}};
                     }),
                                     world));
    optimizer.Step({});
  }
  engine->WaitForParameters();
  PLAIT_ASSIGN_OR_RETURN(const parallel::Simulation simulation, parallel::Simulate(schedule));
  if (world.rank() == 0) {
    std::printf("%-12s bubble %5.1f %% measured (least of the steps), %5.1f %% by the formula\n",
                schedule.name.c_str(), 100 * least, 100 * simulation.bubble);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  using namespace plait;
  absl::ParseCommandLine(argc, argv);
  return comm::RunMain(argc, argv, {}, [](comm::Session& session) {
    for (const parallel::ScheduleKind kind : parallel::kScheduleKinds) {
      PLAIT_RETURN_IF_ERROR(Measure(kind, session.world()));
    }
    return absl::OkStatus();
  });
}
