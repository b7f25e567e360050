#include "models/odenet/odenet.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "models/cross_entropy.h"
#include "models/fan_in_initialisation.h"
#include "models/initial_values.h"
#include "models/layer_text.h"
#include "models/odenet/rate.h"
#include "models/stackable_block.h"
#include "models/stacked/layers.h"

namespace plait::odenet {
namespace {

struct Affine final : torch::nn::Module {
  Affine(Form form, std::int64_t in, std::int64_t out, const at::TensorOptions& options)
      : weight(register_parameter("weight", at::empty(WeightShape(form, in, out), options))),
        bias(register_parameter("bias", at::empty({out}, options))) {}
  at::Tensor weight, bias;
};

}  // namespace

struct Rate final : torch::nn::Module {
  Rate(const OdeNetOptions& options, const at::TensorOptions& tensor_options) {
    const bool dense = options.form == Form::kDense;
    const std::vector<const char*> names =
        dense ? std::vector<const char*>{"linear"} : std::vector<const char*>{"conv1", "conv2"};
    for (const char* const name : names) {
      parts.push_back(register_module(
          name, std::make_shared<Affine>(options.form, options.channels, options.channels, tensor_options)));
    }
  }

  Theta theta() const {
    Theta theta;
    for (const auto& part : parts) theta.insert(theta.end(), {part->weight, part->bias});
    return theta;
  }

  std::vector<std::shared_ptr<Affine>> parts;
};

namespace {

void CheckOptions(const OdeNetOptions& o) {
  PLAIT_CHECK(o.sample.size() == (o.form == Form::kConv2d ? 2u : 1u)) << o.sample.size() << " dimensions";
  for (const std::int64_t size : o.sample) PLAIT_CHECK(size > 0) << "size " << size;
  PLAIT_CHECK(std::min({o.channels, o.layers, o.classes}) > 0 && o.hidden >= 0)
      << o.channels << " channels, " << o.layers << " layers, " << o.classes << " classes, " << o.hidden
      << " hidden";
  PLAIT_CHECK(o.final_time >= 0 && o.time_tikhonov >= 0)
      << "time " << o.final_time << ", regularisation " << o.time_tikhonov;
  if (o.time_weights == TimeWeights::kPiecewise) {
    PLAIT_CHECK(o.controls > 0 && o.layers % o.controls == 0)
        << o.controls << " control points of " << o.layers << " layers";
  }
  if (o.time_weights == TimeWeights::kSpline) PLAIT_CHECK(o.controls >= 2) << o.controls << " control points";
}

std::int64_t StateElements(const OdeNetOptions& o) {
  if (o.form == Form::kDense) return o.channels;
  return std::accumulate(o.sample.begin(), o.sample.end(), o.channels, std::multiplies<>());
}

struct Layer final : torch::nn::Module, models::Block, models::StackableBlock {
  Layer(const OdeNetOptions& layer_options, std::int64_t number,
        const std::vector<std::shared_ptr<Rate>>& all, const at::TensorOptions& tensor_options)
      : options(layer_options), index(number) {
    const TimePoint at = PointOf(options, index);
    share = at.share;
    points.push_back(all[at.first]);
    if (share > 0) points.push_back(all[at.first + 1]);
    // Sharding engines expect one unit per block, with at least one tensor.
    if (options.time_weights != TimeWeights::kPerLayer)
      time = register_buffer("time", at::empty({1}, tensor_options));
  }

  Theta theta() const {
    if (share == 0) return points[0]->theta();
    Theta theta = points[0]->theta();
    const Theta next = points[1]->theta();
    for (std::size_t i = 0; i < theta.size(); ++i) theta[i] = at::lerp(theta[i], next[i], share);
    return theta;
  }

  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override {
    return {TakeStep(options, theta(), input.hidden, options.step() * context.dt), input.auxiliary_loss};
  }
  // Layers of one network differ only in their points in time.
  std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> calls) override {
    auto gathered = models::GatherCalls<Layer>(calls, [&](const Layer& layer, const models::BlockContext&) {
      return layer.options.activation == options.activation &&
             layer.points[0]->theta()[0].sizes() == points[0]->theta()[0].sizes();
    });
    if (!gathered.has_value()) return {};
    std::vector<Theta> thetas;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      thetas.push_back(gathered->blocks[i]->theta());
      gathered->steps[i] *= gathered->blocks[i]->options.step();
    }
    const at::Tensor u = stacked::Stacked(gathered->hidden);
    return stacked::AddScaled(u, EvaluateRates(options, thetas, u), gathered->steps).unbind(0);
  }
  std::vector<at::Tensor> Parameters() const override {
    Theta all;
    for (const auto& point : points) {
      const Theta theta = point->theta();
      all.insert(all.end(), theta.begin(), theta.end());
    }
    return all;
  }

  OdeNetOptions options;
  std::int64_t index;
  std::vector<std::shared_ptr<Rate>> points;
  double share = 0;
  at::Tensor time;  // at which the step begins; undefined with parameters per layer
};

Affine& AsAffine(const std::shared_ptr<torch::nn::Module>& module) { return static_cast<Affine&>(*module); }

void Draw(const Affine& affine, double initial_weights) {
  if (affine.weight.is_meta()) return;
  if (initial_weights < 0) return models::DrawByFanIn(affine.weight, affine.bias);
  models::DrawNormal(affine.weight, {}, initial_weights);
  models::DrawNormal(affine.bias, {}, initial_weights);
}

std::string AffineText(Form form, std::int64_t in, std::int64_t out) {
  if (form == Form::kDense) return models::LinearText(in, out, true);
  const bool two = form == Form::kConv2d;
  return absl::StrCat(two ? "Conv2d(" : "Conv1d(", in, ", ", out, ", kernel_size=", two ? "(3, 3)" : "(3,)",
                      ", stride=", two ? "(1, 1)" : "(1,)", ", padding=", two ? "(1, 1)" : "(1,)", ")");
}

const char* ActivationText(Activation activation) {
  if (activation == Activation::kTanh) return "Tanh";
  return activation == Activation::kRelu ? "ReLU" : "SmoothReLU";
}

std::string TimeText(const OdeNetOptions& o) {
  if (o.time_weights == TimeWeights::kPerLayer) return "";
  const bool spline = o.time_weights == TimeWeights::kSpline;
  return absl::StrCat(", ", o.controls,
                      spline ? " control points, linear between" : " control points, piecewise constant");
}

}  // namespace

OdeNet::OdeNet(const OdeNetOptions& options, const at::TensorOptions& tensor_options)
    : ModuleModel(std::make_shared<torch::nn::Module>("OdeNet")), options_(options) {
  CheckOptions(options);
  const auto affine = [&](const char* name, Form form, std::int64_t in, std::int64_t out) {
    return module()->register_module(name, std::make_shared<Affine>(form, in, out, tensor_options));
  };
  opening_ =
      affine("opening", options.form, options.form == Form::kDense ? options.sample[0] : 1, options.channels);
  const bool own = options.time_weights == TimeWeights::kPerLayer;
  const auto layers = module()->register_module("layers", std::make_shared<torch::nn::Module>());
  const auto rates =
      own ? layers : module()->register_module("controls", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < options.points(); ++i) {
    points_.push_back(
        rates->register_module(absl::StrCat(i), std::make_shared<Rate>(options, tensor_options)));
  }
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto layer = std::make_shared<Layer>(options, i, points_, tensor_options);
    if (!own) layers->register_module(absl::StrCat(i), layer);
    AddBlock(absl::StrCat("layers.", i), layer);
  }
  const std::int64_t elements = StateElements(options);
  if (options.hidden > 0) closing_hidden_ = affine("closing_hidden", Form::kDense, elements, options.hidden);
  closing_ = affine("closing", Form::kDense, options.hidden > 0 ? options.hidden : elements, options.classes);
  SetUsedBy(models::UsedBy::kPrologue, {"opening"});
  SetUsedBy(models::UsedBy::kEpilogue, {"closing", "closing_hidden"});
  for (std::size_t unit = 0; unit <= blocks().size(); ++unit) ResetParameters(unit);
}

models::BlockState OdeNet::Prologue(const models::Batch& batch, const models::BlockContext&) {
  const at::Tensor& x = batch.inputs;
  std::vector<std::int64_t> expected = options_.sample;
  if (options_.form == Form::kConv2d) expected.insert(expected.begin(), 1);
  PLAIT_CHECK(x.dim() > 0 && x.sizes().slice(1) == at::IntArrayRef(expected))
      << "inputs of shape " << x.sizes() << ", expected (batch, " << absl::StrJoin(expected, ", ") << ")";
  const Affine& opening = AsAffine(opening_);
  const at::Tensor in = options_.form == Form::kConv1d ? x.unsqueeze(1) : x;
  return {.hidden = Activate(options_.activation, Apply(options_.form, in, opening.weight, opening.bias))};
}

at::Tensor OdeNet::Output(const models::BlockState& state) {
  at::Tensor x = state.hidden.flatten(1);
  if (closing_hidden_ != nullptr) {
    const Affine& hidden = AsAffine(closing_hidden_);
    x = Activate(options_.activation, Apply(Form::kDense, x, hidden.weight, hidden.bias));
  }
  const Affine& closing = AsAffine(closing_);
  return Apply(Form::kDense, x, closing.weight, closing.bias);
}

models::LossSum OdeNet::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  models::LossSum loss = models::CrossEntropySum(Output(state), batch.targets, batch.valid_targets);
  const bool own = options_.time_weights == TimeWeights::kPerLayer;
  if (own || options_.time_tikhonov == 0 || !module()->is_training() || !at::GradMode::is_enabled())
    return loss;
  const at::Tensor term = TimeTikhonov();
  loss.sum = loss.sum + static_cast<double>(loss.count) * (term - term.detach());
  return loss;
}

at::Tensor OdeNet::TimeTikhonov() const {
  at::Tensor sum = at::zeros({}, points_[0]->theta()[0].options());
  for (std::size_t i = 0; i < points_[0]->theta().size() && points_.size() > 1; ++i) {
    std::vector<at::Tensor> in_time;
    for (const auto& point : points_) in_time.push_back(point->theta()[i]);
    sum = sum + at::stack(in_time).diff(/*n=*/1, /*dim=*/0).square().sum();
  }
  return sum * (options_.time_tikhonov / (2 * options_.spacing()));
}

std::vector<models::ParameterUnit> OdeNet::units() const {
  std::vector<models::ParameterUnit> units = ModuleModel::units();
  for (models::ParameterUnit& unit : units) {
    for (models::ParameterSpec& parameter : unit.parameters) {
      parameter.decays =
          unit.block != models::ParameterUnit::kRoot || absl::StartsWith(parameter.name, "controls.");
    }
  }
  return units;
}

void OdeNet::ResetParameters(std::size_t unit) {
  PLAIT_CHECK(unit <= blocks().size()) << "unit " << unit << " of " << blocks().size() + 1;
  const bool own = options_.time_weights == TimeWeights::kPerLayer;
  if (unit == 0) {
    Draw(AsAffine(opening_), -1);
    if (closing_hidden_ != nullptr) Draw(AsAffine(closing_hidden_), -1);
    Draw(AsAffine(closing_), -1);
  }
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (own ? unit != i + 1 : unit != 0) continue;
    for (const auto& part : points_[i]->parts) Draw(*part, options_.initial_weights);
  }
  if (own || unit == 0) return;
  const auto& layer = static_cast<const Layer&>(*blocks()[unit - 1]);
  models::Fill(layer.time, options_.step() * static_cast<double>(layer.index));
}

std::string OdeNet::Description() const {
  const OdeNetOptions& o = options_;
  const char* const activation = ActivationText(o.activation);
  const std::int64_t in = o.form == Form::kDense ? o.sample[0] : 1;
  std::string rate = AffineText(o.form, o.channels, o.channels);
  if (o.form != Form::kDense) rate = absl::StrCat(rate, ", ", activation, ", ", rate);
  const std::int64_t elements = StateElements(o);
  std::string closing;
  if (o.hidden > 0)
    closing = absl::StrCat(models::LinearText(elements, o.hidden, true), ", ", activation, ", ");
  absl::StrAppend(&closing, models::LinearText(o.hidden > 0 ? o.hidden : elements, o.classes, true));
  return absl::StrCat("OdeNet(\n  (opening): ", AffineText(o.form, in, o.channels), ", ", activation,
                      "\n  (layers): ", o.layers, " x u + ", o.step(), " F(u), F: ", rate, ", ", activation,
                      TimeText(o), "\n  (closing): ", closing, "\n)");
}

}  // namespace plait::odenet
