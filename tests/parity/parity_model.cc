#include "tests/parity/parity_model.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <utility>

#include "models/cnn/cnn.h"
#include "models/gpt/gpt.h"
#include "models/mlp/mlp.h"
#include "models/vit/vit.h"
#include "parallel/tiling/tiled_linear.h"

namespace plait::parity {
namespace {

constexpr std::int64_t kWidth = 12, kVocabulary = 11, kSequence = 6, kPixels = 10, kClasses = 5;

// Of numbers without a pattern that a model could learn in no time: sines of squares.
at::Tensor Numbers(const std::vector<std::int64_t>& sizes, double seed, at::ScalarType type) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor n = at::arange(count, at::kDouble) + seed;
  return at::sin(n * n * 0.37).view(sizes).to(at::kFloat).to(type);
}

at::Tensor Integers(const std::vector<std::int64_t>& sizes, double seed, std::int64_t below) {
  return at::remainder((Numbers(sizes, seed, at::kDouble) * 1e4).to(at::kLong), below);
}

at::Tensor RowsOf(const std::vector<std::int64_t>& samples) { return at::tensor(samples, at::kLong); }

// By parameter, so that cutting a model in units does not change them.
void SetValues(std::vector<models::ParameterUnit>& units) {
  const at::NoGradGuard no_grad;
  double seed = 1;
  for (models::ParameterUnit& unit : units) {
    for (models::ParameterSpec& p : unit.parameters) {
      const at::Tensor values = Numbers(p.tensor.sizes().vec(), seed += 100, p.tensor.scalar_type()) * 0.3;
      // Norms begin at one, as they do in practice.
      const bool norm = p.name.find("ln_") != std::string::npos || p.name.find("norm") != std::string::npos;
      p.tensor.copy_(p.tensor.dim() == 1 && norm ? values + 1 : values);
    }
  }
}

at::Tensor TargetsOf(const std::vector<std::int64_t>& samples, int step, at::ScalarType type) {
  return Numbers({kParitySamples, kWidth}, 7000 + 40.5 * step, type).index_select(0, RowsOf(samples));
}

at::Tensor InputsOf(const std::vector<std::int64_t>& samples, int step, at::ScalarType type) {
  return Numbers({kParitySamples, kWidth}, 3000 + 50.5 * step, type).index_select(0, RowsOf(samples));
}

using MakeBatch = std::function<models::Batch(const std::vector<std::int64_t>& samples, int step)>;

ParityModel Make(const std::shared_ptr<models::BlockModel>& model, const MakeBatch& batch,
                 double loss_factor = 1) {
  const auto run = std::make_shared<models::BlockRunner>();
  return {model->units(),
          [model, run](const EngineRunner& engine) {
            *run = [model, engine](std::size_t block, const models::BlockState& input,
                                   const models::BlockContext& context) {
              const auto forward = [layer = model->blocks()[block], context](const models::BlockState& x) {
                return layer->Forward(x, context);
              };
              return engine(block, forward, input);
            };
          },
          [model, run, batch, loss_factor](const std::vector<std::int64_t>& samples, int step) {
            return models::RunModel(*model, batch(samples, step), *run).sum * loss_factor;
          }};
}

ParityModel MakeMlp(at::ScalarType type) {
  return Make(
      std::make_shared<mlp::Mlp>(
          mlp::MlpOptions{.widths = {kWidth, 30, 17, kWidth}, .activation = mlp::Activation::kRelu}, type),
      [type](const std::vector<std::int64_t>& samples, int step) -> models::Batch {
        return {InputsOf(samples, step, type), TargetsOf(samples, step, type)};
      });
}

// Two tiled layers with an activation between them.
ParityModel MakeTiledMlp(at::ScalarType type) {
  const auto first = std::make_shared<parallel::TiledLinear>(
      parallel::TiledLinearOptions{.in = kWidth, .out = 29, .in_tiles = 2, .out_tiles = 3}, type);
  const auto second = std::make_shared<parallel::TiledLinear>(
      parallel::TiledLinearOptions{
          .in = 29, .out = kWidth, .in_tiles = 3, .out_tiles = 1, .first_block = first->units().size()},
      type);
  std::vector<models::ParameterUnit> units = first->units();
  for (models::ParameterUnit& unit : units) {
    for (models::ParameterSpec& p : unit.parameters) p.name = "first." + p.name;
  }
  for (models::ParameterUnit unit : second->units()) {
    for (models::ParameterSpec& p : unit.parameters) p.name = "second." + p.name;
    units.push_back(std::move(unit));
  }
  return {std::move(units),
          [first, second](const EngineRunner& runner) {
            first->set_tile_runner(runner);
            second->set_tile_runner(runner);
          },
          [first, second, type](const std::vector<std::int64_t>& samples, int step) {
            const at::Tensor hidden = at::relu(first->Forward(InputsOf(samples, step, type)));
            const at::Tensor difference = second->Forward(hidden) - TargetsOf(samples, step, type);
            return (difference * difference).sum();
          }};
}

ParityModel MakeCnn(at::ScalarType type) {
  const cnn::CnnOptions options = {.rows = kPixels,
                                   .columns = kPixels,
                                   .conv1_channels = 3,
                                   .conv2_channels = 5,
                                   .hidden = 9,
                                   .classes = kClasses,
                                   .dropout1 = 0,
                                   .dropout2 = 0};
  return Make(std::make_shared<cnn::Cnn>(options, type),
              [type](const std::vector<std::int64_t>& samples, int step) -> models::Batch {
                const at::Tensor images = Numbers({kParitySamples, 1, kPixels, kPixels}, 500.25 * step, type);
                const at::Tensor labels = Integers({kParitySamples}, 60.5 * step, kClasses);
                return {images.index_select(0, RowsOf(samples)), labels.index_select(0, RowsOf(samples))};
              });
}

// The loss of a sample is the mean over its positions.
ParityModel MakeGpt(at::ScalarType type) {
  const gpt::GptOptions options = {.vocab_size = kVocabulary,
                                   .block_size = kSequence,
                                   .n_layer = 3,
                                   .n_head = 2,
                                   .n_embd = 8,
                                   .bias = false};
  return Make(
      std::make_shared<gpt::Gpt>(options, type),
      [](const std::vector<std::int64_t>& samples, int step) -> models::Batch {
        const at::Tensor text = Integers({kParitySamples, kSequence + 1}, 70.5 * step, kVocabulary)
                                    .index_select(0, RowsOf(samples));
        return {text.narrow(1, 0, kSequence).contiguous(), text.narrow(1, 1, kSequence).contiguous()};
      },
      1.0 / kSequence);
}

// Without biases of keys: no loss depends on them, and AdamW makes steps of what rounding leaves of their gradients.
ParityModel MakeVit(at::ScalarType type) {
  constexpr std::int64_t kSide = 8;
  const vit::VitOptions options = {.image_size = kSide,
                                   .patch_size = 4,
                                   .dim = 8,
                                   .depth = 3,
                                   .heads = 2,
                                   .head_dim = 4,
                                   .mlp_dim = 12,
                                   .classes = kClasses};
  return Make(std::make_shared<vit::Vit>(options, type),
              [type](const std::vector<std::int64_t>& samples, int step) -> models::Batch {
                const at::Tensor images = Numbers({kParitySamples, 3, kSide, kSide}, 800.25 * step, type);
                const at::Tensor labels = Integers({kParitySamples}, 90.5 * step, kClasses);
                return {images.index_select(0, RowsOf(samples)), labels.index_select(0, RowsOf(samples))};
              });
}

}  // namespace

std::string NameOf(ModelKind kind) {
  constexpr const char* kNames[] = {"mlp", "tiled mlp", "cnn", "gpt", "vit"};
  return kNames[static_cast<int>(kind)];
}

std::vector<at::Tensor> ParityModel::parameters() const {
  std::vector<at::Tensor> all;
  for (const models::ParameterUnit& unit : units) {
    for (const models::ParameterSpec& p : unit.parameters) all.push_back(p.tensor);
  }
  return all;
}

ParityModel MakeParityModel(ModelKind kind, at::ScalarType type) {
  constexpr ParityModel (*kMakers[])(at::ScalarType) = {MakeMlp, MakeTiledMlp, MakeCnn, MakeGpt, MakeVit};
  ParityModel model = kMakers[static_cast<int>(kind)](type);
  SetValues(model.units);
  return model;
}

}  // namespace plait::parity
