#include "tools/cnn_training/sharded_cnn.h"

#include <ATen/Context.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "data/safetensors/model.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"

namespace plait::cnn_training {
namespace {

namespace safetensors = data::safetensors;

// The network's smallest image: two convolutions of 3 x 3 and a pool of 2 x 2.
constexpr std::int64_t kSmallestSide = 6;

cnn::CnnOptions OptionsOf(const Config& config, const data::ImageSet& set) {
  return {.rows = set.train.rows,
          .columns = set.train.columns,
          .classes = static_cast<std::int64_t>(set.class_names.size()),
          .dropout1 = config.dropout1,
          .dropout2 = config.dropout2};
}

// Elements of a sample.
struct Sizes {
  std::int64_t image, first, second, pooled;
};

Sizes SizesOf(const cnn::CnnOptions& o) {
  return {.image = o.rows * o.columns,
          .first = o.conv1_channels * (o.rows - 2) * (o.columns - 2),
          .second = o.conv2_channels * (o.rows - 4) * (o.columns - 4),
          .pooled = o.conv2_channels * ((o.rows - 4) / 2) * ((o.columns - 4) / 2)};
}

std::vector<std::string> NamesOf(const std::vector<parallel::ParameterUnit>& units) {
  std::vector<std::string> names;
  for (const parallel::ParameterUnit& unit : units) names.push_back(unit.name);
  return names;
}

safetensors::DType FileType(at::ScalarType type) {
  if (type == at::kDouble) return safetensors::DType::kF64;
  return type == at::kBFloat16 ? safetensors::DType::kBF16 : safetensors::DType::kF32;
}

// Biases too, as torch.optim.AdamW does without groups.
bool DecaysAll(const std::string&, const at::Tensor&) { return true; }

}  // namespace

at::ScalarType MasterType(const Config& config) {
  return config.dtype == "float64" ? at::kDouble : at::kFloat;
}

at::ScalarType ComputeType(const Config& config) {
  return config.dtype == "bfloat16" ? at::kBFloat16 : MasterType(config);
}

absl::StatusOr<cnn::Cnn> MetaModel(const Config& config, const data::ImageSet& set) {
  if (std::min(set.train.rows, set.train.columns) < kSmallestSide) {
    return absl::InvalidArgumentError(
        absl::StrCat("images of ", set.train.rows, " x ", set.train.columns, ": expected at least 6 x 6"));
  }
  return cnn::Cnn(OptionsOf(config, set), at::TensorOptions(MasterType(config)).device(at::kMeta));
}

std::vector<parallel::ParameterUnit> UnitsOf(const cnn::Cnn& model) {
  std::vector<parallel::ParameterUnit> units;
  for (const models::ParameterUnit& unit : model.units()) {
    if (unit.parameters.empty()) continue;
    units.push_back({unit.name, {}});
    for (const models::ParameterSpec& parameter : unit.parameters) {
      units.back().parameters.emplace_back(parameter.name, parameter.tensor);
    }
  }
  return units;
}

std::int64_t ActivationBytes(const cnn::CnnOptions& options, at::ScalarType type) {
  const Sizes n = SizesOf(options);
  // At the end of forward: the image, what both relus gave, dropout's factors and results, and the pool's
  // places (int64).
  const std::int64_t kept =
      n.image + n.first + n.second + 2 * n.pooled + 3 * options.hidden + options.classes;
  // In backward through the second relu: gradients on both sides of it.
  const std::int64_t relu = n.image + n.first + 3 * n.second;
  // In backward through the second convolution: gradients on both sides of it, and oneDNN's copies of what
  // it reads in its own layout.
  const std::int64_t convolution = n.image + 3 * n.first + 2 * n.second;
  const auto bytes = static_cast<std::int64_t>(c10::elementSize(type));
  return std::max({kept * bytes + n.pooled * 8, relu * bytes, convolution * bytes});
}

std::int64_t EvaluationBytes(const cnn::CnnOptions& options, at::ScalarType type) {
  const Sizes n = SizesOf(options);
  // In the second relu: both sides of it, and what the convolution before it has read.
  return (n.image + n.first + 2 * n.second) * static_cast<std::int64_t>(c10::elementSize(type));
}

parallel::MemoryPlan PlanOf(const Config& config, const MeshShape& mesh, const cnn::Cnn& model,
                            const data::ImageSet& set) {
  return parallel::PlanMemory(
      {.units = parallel::PlanUnits(UnitsOf(model), mesh.dp_shard, DecaysAll),
       .strategy = StrategyOf(config),
       .replicate_ranks = mesh.dp_replicate,
       .shard_ranks = mesh.dp_shard,
       .master_type = MasterType(config),
       .compute_type = ComputeType(config),
       .moments_place = training_program::StatePlaceOf(config.offload).place,
       .masters_place = training_program::StatePlaceOf(config.offload).place,
       .offloads_parameters = config.offload.parameters,
       .micro_batch = config.batch_size,
       .activation_bytes_per_sample = ActivationBytes(OptionsOf(config, set), ComputeType(config)),
       .evaluation_bytes =
           config.test_batch_size * EvaluationBytes(OptionsOf(config, set), ComputeType(config))});
}

absl::StatusOr<std::unique_ptr<ShardedCnn>> ShardedCnn::Create(const Config& config,
                                                               const comm::DeviceMesh& mesh, cnn::Cnn model) {
  auto net = std::unique_ptr<ShardedCnn>(new ShardedCnn(std::move(model)));
  const std::vector<parallel::ParameterUnit> units = UnitsOf(net->model_);
  PLAIT_ASSIGN_OR_RETURN(const parallel::CheckpointPolicy policy,
                         parallel::CheckpointPolicy::Parse(config.activation_checkpoints, NamesOf(units)));
  const parallel::StateStoreOptions place = training_program::StatePlaceOf(config.offload);
  // From the same state on every rank, unit by unit. The first of the model's units has no parameters.
  at::manual_seed(base::DeriveSeed(config.seed, "parameters"));
  PLAIT_ASSIGN_OR_RETURN(net->engine_,
                         parallel::DataParallel::Create(
                             {.replicate = mesh.axis("dp_replicate"), .shard = mesh.axis("dp_shard")}, units,
                             {.strategy = StrategyOf(config),
                              .compute_type = ComputeType(config),
                              .decays = DecaysAll,
                              .masters_place = place,
                              .offloads_parameters = config.offload.parameters},
                             [&net](std::size_t unit) { net->model_.ResetParameters(unit + 1); }));
  PLAIT_ASSIGN_OR_RETURN(net->optimizer_,
                         parallel::ShardedOptimizer::Create(
                             *net->engine_, {.lr = config.lr, .weight_decay = config.weight_decay}, place));
  parallel::DataParallel& engine = *net->engine_;
  const auto run =
      policy.Around([&engine](std::size_t block, const parallel::BlockForward& forward,
                              const at::Tensor& input) { return engine.Run(block, forward, input); });
  net->run_ = [&model = net->model_, run](std::size_t block, const models::BlockState& input,
                                          const models::BlockContext& context) {
    const auto forward = [layer = model.blocks()[block], context](const at::Tensor& x) {
      return layer->Forward({.hidden = x}, context).hidden;
    };
    return models::BlockState{.hidden = run(block, forward, input.hidden)};
  };
  return net;
}

absl::Status ShardedCnn::SaveModel(const std::string& folder, const comm::Communicator& world) {
  std::vector<at::Tensor> kept;
  std::vector<safetensors::TensorView> views;
  engine_->VisitWhole([&](const parallel::ParameterUnit& unit) {
    if (world.rank() != 0) return;
    for (const auto& [name, parameter] : unit.parameters) {
      kept.push_back(parameter.detach().clone());
      views.push_back(
          {name, {FileType(parameter.scalar_type()), parameter.sizes().vec()}, kept.back().const_data_ptr()});
    }
  });
  absl::Status written = base::Prefixed(engine_->status(), "--offload");
  if (written.ok() && world.rank() == 0)
    written = base::Prefixed(safetensors::WriteModel(folder, views, {}), "--save-model");
  return world.Agree(written);
}

}  // namespace plait::cnn_training
