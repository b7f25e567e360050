// A GPT on two pipeline stages, each sharded over two ranks (fsdp, zero1) or replicated (ddp), under a 1F1B
// schedule with several micro-batches in flight, against one rank with LibTorch's AdamW, in float64. The tied
// embedding is on both stages. Harlap et al., "PipeDream", SOSP 2019; Narayanan et al., SC 2021, section 2.2.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/tensor_collectives.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "tests/parity/serial_adamw.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using models::Batch;
using models::BlockState;

constexpr int kStages = 2, kDataRanks = 2, kMicroBatches = 5, kSteps = 6;
constexpr std::int64_t kSamples = 3, kSequence = 7, kVocabulary = 13, kWidth = 8;
constexpr double kClip = 0.1;
const parallel::ShardedOptimizerOptions kAdamW = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1};
// As the parity matrix.
constexpr double kTolerance = 1e-12;

struct Setting {
  parallel::Strategy strategy;
  bool reshard_after_forward;
  bool reduce_every_micro_batch;
};

std::shared_ptr<gpt::Gpt> MakeModel() {
  at::manual_seed(11);
  return std::make_shared<gpt::Gpt>(gpt::GptOptions{.vocab_size = kVocabulary,
                                                    .block_size = kSequence,
                                                    .n_layer = 4,
                                                    .n_head = 2,
                                                    .n_embd = kWidth,
                                                    .bias = true},
                                    at::kDouble);
}

Batch MakeBatch(int step, int micro_batch, int data_rank) {
  at::manual_seed(1 + step + 100 * micro_batch + 10000 * data_rank);
  const at::Tensor text = at::randint(kVocabulary, {kSamples, kSequence + 1}, at::kLong);
  return {text.narrow(1, 0, kSequence).contiguous(), text.narrow(1, 1, kSequence).contiguous()};
}

constexpr double kTokens = kSamples * kSequence * kMicroBatches * kDataRanks;

// What one stage does in a step: +k is the forward of micro-batch k - 1, -k its backward.
std::vector<int> OneForwardOneBackward(int stage) {
  std::vector<int> actions;
  const int ahead = kStages - 1 - stage;
  int forward = 0, backward = 0;
  while (forward < ahead) actions.push_back(++forward);
  while (forward < kMicroBatches) {
    actions.push_back(++forward);
    actions.push_back(-++backward);
  }
  while (backward < kMicroBatches) actions.push_back(-++backward);
  return actions;
}

class Stage {
 public:
  Stage(const Setting& setting, const comm::DeviceMesh& mesh)
      : setting_(setting), pp_(mesh.axis("pp")), model_(MakeModel()) {
    data_rank_ = mesh.axis(setting.strategy == parallel::Strategy::kDdp ? "dp_replicate" : "dp_shard").rank();
    std::vector<models::ParameterUnit> units;
    const int per_stage = static_cast<int>(model_->blocks().size()) / kStages;
    for (models::ParameterUnit& unit : model_->units()) {
      if (unit.block == models::ParameterUnit::kRoot) {
        units.push_back(RootOf(unit));
      } else if (unit.block / per_stage == pp_.rank()) {
        blocks_.push_back(model_->blocks()[unit.block]);
        unit.block %= per_stage;
        units.push_back(unit);
      }
    }
    dp_ = *parallel::DataParallel::Create(mesh, units,
                                          {.strategy = setting.strategy,
                                           .reshard_after_forward = setting.reshard_after_forward,
                                           .part_bytes = 512});
    optimizer_ = std::make_unique<parallel::ShardedOptimizer>(*dp_, kAdamW);
  }

  // The loss of the whole batch, on the last stage.
  double Step(int step) {
    loss_ = 0;
    most_in_flight_ = 0;
    for (const int action : OneForwardOneBackward(pp_.rank())) {
      action > 0 ? Forward(step, action - 1) : Backward(-action - 1);
    }
    for (comm::TensorWork& work : sends_) work.Wait();
    sends_.clear();
    EXPECT_GT(optimizer_->Step({.clip_norm = kClip}).gradient_norm, kClip) << "clipping is not tested";
    return loss_;
  }
  std::size_t most_in_flight() const { return most_in_flight_; }

  parallel::DataParallel& engine() { return *dp_; }

 private:
  bool first() const { return pp_.rank() == 0; }
  bool last() const { return pp_.rank() == kStages - 1; }

  // Positions on the first stage, the final norm on the last, the tied embedding on both: its gradient is the
  // sum of theirs.
  models::ParameterUnit RootOf(const models::ParameterUnit& whole) const {
    models::ParameterUnit unit = {.name = whole.name, .parameters = {}};
    for (models::ParameterSpec p : whole.parameters) {
      const bool tied = p.name == "transformer.wte.weight", positions = p.name == "transformer.wpe.weight";
      if (tied) p.placement.partial = {"pp"};
      if (tied || positions == first()) unit.parameters.push_back(p);
    }
    return unit;
  }

  void Forward(int step, int micro_batch) {
    const Batch batch = MakeBatch(step, micro_batch, data_rank_);
    InFlight pass;
    if (!first()) {
      pass.input = at::empty({kSamples, kSequence, kWidth}, at::kDouble);
      comm::Receive(pp_, pass.input, pp_.rank() - 1, /*tag=*/2 * micro_batch);
      pass.input.requires_grad_(true);
    }
    pass.output = dp_->Forward([&] {
      BlockState state = first() ? model_->Prologue(batch, {}) : BlockState{pass.input};
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        state = dp_->Run(
            b, [&](const BlockState& x) { return blocks_[b]->Forward(x, {}); }, state);
      }
      return last() ? model_->Epilogue(state, batch).sum / kTokens : state.hidden;
    });
    if (last()) {
      loss_ += pass.output.item<double>();
    } else {
      sends_.push_back(comm::SendAsync(pp_, pass.output.detach(), pp_.rank() + 1, /*tag=*/2 * micro_batch));
    }
    in_flight_.push_back(std::move(pass));
    most_in_flight_ = std::max(most_in_flight_, in_flight_.size());
  }

  void Backward(int micro_batch) {
    const InFlight pass = in_flight_.front();
    in_flight_.pop_front();
    at::Tensor gradient;
    if (!last()) {
      gradient = at::empty({kSamples, kSequence, kWidth}, at::kDouble);
      comm::Receive(pp_, gradient, pp_.rank() + 1, /*tag=*/2 * micro_batch + 1);
    }
    dp_->Backward([&] { pass.output.backward(gradient); },
                  {.last = micro_batch + 1 == kMicroBatches,
                   .reduce_every_micro_batch = setting_.reduce_every_micro_batch});
    if (first()) return;
    sends_.push_back(comm::SendAsync(pp_, pass.input.grad(), pp_.rank() - 1, /*tag=*/2 * micro_batch + 1));
  }

  struct InFlight {
    at::Tensor input, output;
  };
  Setting setting_;
  comm::Communicator pp_;
  int data_rank_ = 0;
  std::shared_ptr<gpt::Gpt> model_;
  std::vector<std::shared_ptr<models::Block>> blocks_;
  std::unique_ptr<parallel::DataParallel> dp_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
  std::deque<InFlight> in_flight_;
  std::vector<comm::TensorWork> sends_;
  double loss_ = 0;
  std::size_t most_in_flight_ = 0;
};

SerialTraining SerialRun() {
  const std::shared_ptr<gpt::Gpt> model = MakeModel();
  SerialTraining run;
  run.parameters = NamedParameters(model->units());
  SerialAdamW optimizer(run.parameters, kAdamW);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.ZeroGradients();
    double loss = 0;
    for (int micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) {
      for (int rank = 0; rank < kDataRanks; ++rank) {
        const at::Tensor part = models::RunModel(*model, MakeBatch(step, micro_batch, rank)).sum / kTokens;
        part.backward();
        loss += part.item<double>();
      }
    }
    optimizer.Step(kClip);
    run.losses.push_back(loss);
  }
  return run;
}

TEST(Pipeline, StagesWithShardedStatesAreOneRank) {
  const SerialTraining serial = SerialRun();
  for (const parallel::Strategy strategy : {parallel::Strategy::kDdp, parallel::Strategy::kZero1,
                                            parallel::Strategy::kZero2, parallel::Strategy::kFsdp}) {
    for (const bool reshard : {true, false}) {
      for (const bool every : {true, false}) {
        SCOPED_TRACE(std::string(parallel::Name(strategy)) + (reshard ? "" : " keeps") +
                     (every ? " every" : ""));
        const char* axis = strategy == parallel::Strategy::kDdp ? "dp_replicate" : "dp_shard";
        const auto mesh = *comm::DeviceMesh::Create(World(), {{"pp", kStages}, {axis, kDataRanks}});
        Stage stage({strategy, reshard, every}, mesh);
        for (int step = 0; step < kSteps; ++step) {
          double loss = stage.Step(step);
          World().AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));
          EXPECT_NEAR(loss / serial.losses[step], 1, kTolerance) << "loss of step " << step;
        }
        EXPECT_EQ(stage.most_in_flight(), mesh.axis("pp").rank() == 0 ? 2u : 1u);
        ExpectParameters(stage.engine(), serial.parameters, kTolerance);
      }
    }
  }
}

}  // namespace
}  // namespace plait::parity
