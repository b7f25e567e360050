// The network of a run, sharded as its settings say, with its optimizer.
//
//   cnn::Cnn model = MetaModel(config, images.set);                  // sizes, no memory
//   PLAIT_RETURN_IF_ERROR(CheckPlan(PlanOf(config, mesh, model), ...));
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<ShardedCnn> net, ShardedCnn::Create(config, mesh,
//   std::move(model))); const at::Tensor loss = net->engine().Forward([&] { return
//   at::nll_loss(net->Forward(x), y); });
//
// Every layer is a unit of the engine; initial values are those of the seed, whatever the ranks.
#ifndef PLAIT_TOOLS_CNN_TRAINING_SHARDED_CNN_H_
#define PLAIT_TOOLS_CNN_TRAINING_SHARDED_CNN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "comm/device_mesh.h"
#include "data/idx/image_set.h"
#include "models/cnn/cnn.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/plan/memory_plan.h"
#include "parallel/sharding/data_parallel.h"
#include "tools/cnn_training/config.h"

namespace plait::cnn_training {

// Of masters, and of parameters and activations.
at::ScalarType MasterType(const Config& config);
at::ScalarType ComputeType(const Config& config);

// On the meta device. InvalidArgument for images that are too small for it.
absl::StatusOr<cnn::Cnn> MetaModel(const Config& config, const data::ImageSet& set);

// The model's units with parameters: conv1, conv2, fc1, fc2.
std::vector<parallel::ParameterUnit> UnitsOf(const cnn::Cnn& model);

// The largest sum of bytes that a forward and a backward pass hold for each sample of a large batch.
std::int64_t ActivationBytes(const cnn::CnnOptions& options, at::ScalarType type);
// The same of a forward pass without autograd.
std::int64_t EvaluationBytes(const cnn::CnnOptions& options, at::ScalarType type);

parallel::MemoryPlan PlanOf(const Config& config, const MeshShape& mesh, const cnn::Cnn& model,
                            const data::ImageSet& set);

class ShardedCnn {
 public:
  // Collective. InvalidArgument for activation checkpoints of layers that there are not, and those of
  // DataParallel::Create and ShardedOptimizer::Create.
  static absl::StatusOr<std::unique_ptr<ShardedCnn>> Create(const Config& config,
                                                            const comm::DeviceMesh& mesh, cnn::Cnn model);

  cnn::Cnn& model() { return model_; }
  // Logarithms of probabilities; inside engine().Forward().
  at::Tensor Forward(const at::Tensor& x) {
    return models::RunOutput(model_, {.inputs = x, .targets = {}}, run_);
  }
  parallel::DataParallel& engine() { return *engine_; }
  parallel::ShardedOptimizer& optimizer() { return *optimizer_; }

  // Collective. Rank 0 writes the parameters, in their own type, as a safetensors model into `folder`.
  absl::Status SaveModel(const std::string& folder, const comm::Communicator& world);

 private:
  explicit ShardedCnn(cnn::Cnn model) : model_(std::move(model)) {}

  cnn::Cnn model_;
  models::BlockRunner run_;
  std::unique_ptr<parallel::DataParallel> engine_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
};

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_SHARDED_CNN_H_
