// The executor, beyond the tests of real models in tests/parity: auxiliary losses are sent with hidden states, input
// shapes change, and schedules that cannot run are rejected.
#include "parallel/pipeline/executor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "comm/device_mesh.h"
#include "comm/flight_recorder.h"
#include "comm/gathered_text.h"
#include "comm/testing/world.h"

namespace plait::parallel {
namespace {

using comm::testing::World;
using models::BlockContext;
using models::BlockState;
using ::testing::HasSubstr;

constexpr std::int64_t kWidth = 4;
constexpr int kBlocks = 6, kMicroBatches = 6;
// Of sums of a few hundred products of numbers below 1.
constexpr double kTolerance = 1e-13;

at::Tensor Numbers(std::vector<std::int64_t> sizes, double seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor n = at::arange(count, at::kDouble) + seed;
  return at::sin(n * n * 0.37).view(sizes);
}

struct AuxiliaryBlock final : models::Block {
  explicit AuxiliaryBlock(int index) : weight(Numbers({kWidth, kWidth}, 10 * index).requires_grad_(true)) {}
  BlockState Forward(const BlockState& input, const BlockContext&) override {
    const at::Tensor hidden = at::tanh(at::mm(input.hidden, weight)), square = (hidden * hidden).sum();
    return {hidden, input.auxiliary_loss.defined() ? input.auxiliary_loss + square : square};
  }
  std::vector<at::Tensor> Parameters() const override { return {weight}; }
  at::Tensor weight;
};

// The loss is the sum of all squares of hidden states, and of the outputs.
class AuxiliaryModel final : public models::BlockModel {
 public:
  AuxiliaryModel() {
    for (int i = 0; i < kBlocks; ++i) blocks_.push_back(std::make_shared<AuxiliaryBlock>(i));
  }
  BlockState Prologue(const models::Batch& batch, const BlockContext&) override { return {batch.inputs}; }
  const std::vector<std::shared_ptr<models::Block>>& blocks() const override { return blocks_; }
  at::Tensor Output(const BlockState& state) override { return state.hidden; }
  models::LossSum Epilogue(const BlockState& state, const models::Batch& batch) override {
    return {state.hidden.sum() + state.auxiliary_loss, batch.inputs.size(0)};
  }
  std::vector<models::ParameterUnit> units() const override {
    std::vector<models::ParameterUnit> units;
    for (int i = 0; i < kBlocks; ++i) {
      const std::string name = "block." + std::to_string(i);
      units.push_back(models::MakeUnit(name, {{name, blocks_[i]->Parameters()[0]}}, i));
    }
    return units;
  }
  void ResetParameters(std::size_t) override {}
  void SetTraining(bool) override {}
  std::string Description() const override { return "AuxiliaryModel"; }

 private:
  std::vector<std::shared_ptr<models::Block>> blocks_;
};

// 3, 2, 1, 3, ... rows.
models::Batch BatchOf(int micro_batch) {
  return {Numbers({3 - micro_batch % 3, kWidth}, 100 + micro_batch), at::Tensor()};
}

struct Pipeline {
  AuxiliaryModel model;
  Schedule schedule;
  std::vector<StageRange> stages;
  std::unique_ptr<DataParallel> engine;

  explicit Pipeline(ScheduleKind kind)
      : schedule(*MakeSchedule(kind, {.ranks = World().size(), .micro_batches = kMicroBatches})),
        stages(*SplitBlocks(CostsByParameters(model.units()), schedule.stages())) {
    std::vector<models::ParameterUnit> units;
    for (const auto& [unit, index] :
         UnitsOfRank(model.units(), stages, schedule.rank_of_stage, World().rank())) {
      units.push_back(unit);
    }
    engine = *DataParallel::Create(*comm::DeviceMesh::Create(World(), {{"pp", World().size()}}), units, {});
  }
};

TEST(PipelineExecutor, AuxiliaryLossesAndShapesTravel) {
  AuxiliaryModel serial;
  double expected = 0;
  for (int k = 0; k < kMicroBatches; ++k) {
    const at::Tensor loss = models::RunModel(serial, BatchOf(k)).sum;
    loss.mul(0.5 + k).backward();
    expected += loss.item<double>();
  }
  std::map<std::string, at::Tensor> gradients;
  for (const models::ParameterUnit& unit : serial.units())
    gradients[unit.name] = unit.parameters[0].tensor.grad();
  for (const ScheduleKind kind : kScheduleKinds) {
    SCOPED_TRACE(std::string(Name(kind)));
    Pipeline p(kind);
    const auto executor = *PipelineExecutor::Create(*p.engine, p.model, World(), p.schedule, p.stages);
    const PipelineStep step = executor->Run([](int k) { return PipelineMicroBatch{BatchOf(k), 0.5 + k}; });
    double sum = 0;
    for (const models::LossSum& loss : step.losses) sum += loss.sum.item<double>();
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&sum, 1)));
    EXPECT_NEAR(sum, expected, kTolerance * expected);
    for (const Shard& shard : p.engine->shards()) {
      const at::Tensor& gradient = gradients.at(shard.parameters[0]->name);
      const at::Tensor own = shard.gradient.narrow(0, 0, gradient.numel()).view(gradient.sizes());
      EXPECT_LE((own - gradient).abs().max().item<double>(),
                kTolerance * gradient.abs().max().item<double>());
    }
    p.engine->AllGatherParameters();
    double loss = executor->Loss(BatchOf(1)).sum.item<double>();
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));
    EXPECT_NEAR(loss, models::RunModel(serial, BatchOf(1)).sum.item<double>(), kTolerance * expected);
    p.engine->WaitForParameters();
  }
}

// Of this rank's sends, or receives, since call number `first`: a line "group sender->receiver: tags" for each pair of
// ranks, in the order in which they were started.
std::string Messages(comm::Operation operation, std::int64_t first) {
  std::map<std::string, std::string> tags;
  const std::map<std::uint64_t, comm::RecordedGroup> groups = World().recorder().Groups();
  for (const comm::CallRecord& call : World().recorder().Calls()) {
    const comm::RecordedGroup& group = groups.at(call.group);
    if (call.id < first || call.operation != operation || group.name != World().name()) continue;
    const int me = World().rank(), other = group.members[call.root];
    const bool sends = operation == comm::Operation::kSend;
    const std::string pair = absl::StrCat(call.group, " ", sends ? me : other, "->", sends ? other : me, ":");
    absl::StrAppend(&tags[pair], " ", call.tag);
  }
  return absl::StrJoin(tags, "\n", absl::PairFormatter(""));
}

std::vector<std::string> MessagesOfAll(comm::Operation operation, std::int64_t first) {
  std::vector<std::string> lines;
  for (const std::string& text : comm::GatherText(World(), Messages(operation, first))) {
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty()))
      lines.emplace_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// NCCL ignores tags: messages of two ranks are matched by their order.
TEST(PipelineExecutor, ReceivesAreStartedInTheOrderOfSends) {
  for (const ScheduleKind kind : kScheduleKinds) {
    SCOPED_TRACE(std::string(Name(kind)));
    Pipeline p(kind);
    const auto executor = *PipelineExecutor::Create(*p.engine, p.model, World(), p.schedule, p.stages);
    const std::int64_t first = World().recorder().Calls().back().id + 1;
    executor->Run([](int k) { return PipelineMicroBatch{BatchOf(k), 1.0}; });
    const std::vector<std::string> sends = MessagesOfAll(comm::Operation::kSend, first);
    EXPECT_FALSE(sends.empty());
    EXPECT_EQ(MessagesOfAll(comm::Operation::kReceive, first), sends);
  }
}

// In the first stage's forwards; on other ranks before these begin, as their receives need the input's shape.
TEST(PipelineExecutor, TimeOfMakingBatchesIsKnown) {
  constexpr std::chrono::milliseconds kEach(5);
  constexpr std::int64_t kAll = kMicroBatches * std::chrono::nanoseconds(kEach).count();
  Pipeline p(ScheduleKind::k1F1B);
  const auto executor = *PipelineExecutor::Create(*p.engine, p.model, World(), p.schedule, p.stages);
  const PipelineStep step = executor->Run([&](int k) {
    std::this_thread::sleep_for(kEach);
    return PipelineMicroBatch{BatchOf(k), 1.0};
  });
  std::int64_t forward = 0;
  for (const ActionTime& time : step.timeline) {
    if (time.action.kind == ActionKind::kForward) forward += time.end_ns - time.begin_ns;
  }
  if (World().rank() == 0) {
    EXPECT_GE(forward, kAll);
    EXPECT_EQ(step.batch_ns, 0);
  } else {
    EXPECT_GE(step.batch_ns, kAll);
  }
}

TEST(PipelineExecutor, RefusesSchedulesThatCannotRun) {
  Pipeline p(ScheduleKind::k1F1B);
  const auto error = [&](const Schedule& schedule) {
    return PipelineExecutor::Create(*p.engine, p.model, World(), schedule, p.stages).status();
  };
  const int ranks = World().size();
  EXPECT_EQ(error(*MakeSchedule(ScheduleKind::k1F1B, {.ranks = ranks + 1})).message(),
            "a schedule of " + std::to_string(ranks + 1) + " ranks and " + std::to_string(ranks + 1) +
                " stages, but the model has " + std::to_string(ranks) + " stages on " +
                std::to_string(ranks) + " ranks of world");
  // Deadlock: the first rank waits for the backward of its first micro-batch, the last one for the second forward.
  Schedule stuck = *MakeSchedule(ScheduleKind::k1F1B, {.ranks = ranks, .micro_batches = 2});
  std::swap(stuck.actions[0][1], stuck.actions[0][2]);
  const Schedule all_forward = *MakeSchedule(ScheduleKind::kGpipe, {.ranks = ranks, .micro_batches = 2});
  stuck.actions[ranks - 1] = all_forward.actions[ranks - 1];
  EXPECT_EQ(error(stuck).code(), absl::StatusCode::kFailedPrecondition);
  p.engine->WaitForParameters();
}

TEST(PipelineExecutor, RefusesStagesThatAreNotTheModel) {
  Pipeline p(ScheduleKind::k1F1B);
  const auto error = [&](const std::vector<StageRange>& stages) {
    return std::string(
        PipelineExecutor::Create(*p.engine, p.model, World(), p.schedule, stages).status().message());
  };
  std::vector<StageRange> stages = p.stages;
  stages[1].first += stages[1].count;
  stages[1].count = 0;
  EXPECT_THAT(error(stages), HasSubstr("stage 1 has 0 blocks"));
  stages = p.stages;
  --stages.back().count;
  EXPECT_THAT(error(stages), HasSubstr("the stages have 5 blocks, the model has 6"));
  stages = p.stages;
  ++stages[1].first;
  EXPECT_THAT(error(stages), HasSubstr("stage 1 has "));
  p.engine->WaitForParameters();
}

// Also if the plan would be valid on a rank alone, or a rank has an error of its own.
TEST(PipelineExecutor, NamesTheRankWithAnotherPlan) {
  Pipeline p(ScheduleKind::k1F1B);
  const auto error = [&](int micro_batches) {
    const Schedule schedule =
        *MakeSchedule(ScheduleKind::k1F1B, {.ranks = World().size(), .micro_batches = micro_batches});
    return std::string(
        PipelineExecutor::Create(*p.engine, p.model, World(), schedule, p.stages).status().message());
  };
  EXPECT_EQ(error(World().rank() == 1 ? 7 : 6)
                .find("rank 1 of world has another pipeline than rank 0: 1f1b, 7 micro-"),
            0u);
  p.engine->WaitForParameters();
}

}  // namespace
}  // namespace plait::parallel
