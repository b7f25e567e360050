// A GPT in the sharding engine, with its optimizer, as a run's settings say.
//
//   const gpt::Gpt model = MetaModel(config, OptionsOf(config, vocabulary));     // sizes, no memory
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<ShardedGpt> sharded, ShardedGpt::Create(config, model, mesh));
//   at::Tensor part = sharded->engine().Forward([&] { return sharded->Loss(x, y) * share; });
//   sharded->engine().Backward(part);
//   sharded->optimizer().Step({.clip_norm = 1});
//
// No rank ever has more than its shards and one unit: the model begins on the meta device. Initial values are
// those of the seed, whatever the ranks. Collective.
#ifndef PLAIT_TOOLS_GPT_TRAINING_SHARDED_GPT_H_
#define PLAIT_TOOLS_GPT_TRAINING_SHARDED_GPT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "models/gpt/gpt.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "tools/gpt_training/config.h"

namespace plait::gpt_training {

// Sets the parameters of unit `unit` of the model, which have memory then.
using InitializeFrom = std::function<void(gpt::Gpt& model, std::size_t unit)>;

// Of a model that begins from scratch.
gpt::GptOptions OptionsOf(const Config& config, std::int64_t vocabulary_size);

// Of parameters between steps: float64 for --dtype=float64, else float32.
at::ScalarType MasterType(const Config& config);
// Of parameters and activations in work.
at::ScalarType ComputeType(const Config& config);

// On the meta device.
gpt::Gpt MetaModel(const Config& config, const gpt::GptOptions& options);
// The model's, the first of them the root.
std::vector<parallel::ParameterUnit> UnitsOf(const gpt::Gpt& model);

class ShardedGpt {
 public:
  // Gives the meta model its memory. `initialize` sets a unit's parameters; empty: drawn from the seed.
  // Errors of the engine, and InvalidArgument for an activation checkpoint that no block has.
  static absl::StatusOr<std::unique_ptr<ShardedGpt>> Create(const Config& config, gpt::Gpt model,
                                                            const comm::DeviceMesh& mesh,
                                                            const InitializeFrom& initialize = {});
  gpt::Gpt& model() { return model_; }
  // Runs a block of the model through the engine.
  const models::BlockRunner& run() const { return run_; }
  // Mean cross entropy; inside engine().Forward().
  at::Tensor Loss(const at::Tensor& inputs, const at::Tensor& targets) {
    const models::LossSum loss = models::RunModel(model_, {inputs, targets}, run_);
    return loss.sum.div(loss.count);
  }
  parallel::DataParallel& engine() { return *engine_; }
  parallel::ShardedOptimizer& optimizer() { return *optimizer_; }

 private:
  explicit ShardedGpt(gpt::Gpt model) : model_(std::move(model)) {}
  absl::Status Assemble(const Config& config, const comm::DeviceMesh& mesh, const InitializeFrom& initialize);

  gpt::Gpt model_;
  models::BlockRunner run_;
  std::unique_ptr<parallel::DataParallel> engine_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
};

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_SHARDED_GPT_H_
