#include "models/gru/sequence_classifier.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <torch/nn/module.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/cross_entropy.h"
#include "models/fan_in_initialisation.h"
#include "models/gru/parameters.h"
#include "models/layer_text.h"

namespace plait::gru {
namespace {

class GruBlock final : public models::Block {
 public:
  explicit GruBlock(SerialGru gru) : gru_(std::move(gru)) {}
  models::BlockState Forward(const models::BlockState& input, const models::BlockContext&) override {
    return {gru_.Forward(input.hidden).output, input.auxiliary_loss};
  }
  std::vector<at::Tensor> Parameters() const override { return gru_.parameters(); }

 private:
  SerialGru gru_;
};

}  // namespace

SequenceClassifier::SequenceClassifier(const SequenceClassifierOptions& options,
                                       const at::TensorOptions& tensor_options)
    : ModuleModel(std::make_shared<torch::nn::Module>("SequenceClassifier")),
      gru_(options.gru, tensor_options),
      head_weight_(at::empty({options.classes, options.gru.cell.hidden}, tensor_options)),
      head_bias_(at::empty({options.classes}, tensor_options)) {
  module()->register_module("gru", gru_.module());
  AddBlock("gru", std::make_shared<GruBlock>(gru_));
  const auto head = module()->register_module("head", std::make_shared<torch::nn::Module>("Linear"));
  head->register_parameter("weight", head_weight_);
  head->register_parameter("bias", head_bias_);
  SetUsedBy(models::UsedBy::kEpilogue, {"head"});
  ResetParameters(1);
}

models::BlockState SequenceClassifier::Prologue(const models::Batch& batch, const models::BlockContext&) {
  return {.hidden = batch.inputs};
}

at::Tensor SequenceClassifier::Output(const models::BlockState& state) {
  return at::linear(state.hidden, head_weight_, head_bias_);
}

models::LossSum SequenceClassifier::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  return models::CrossEntropySum(Output(state), batch.targets, batch.valid_targets);
}

std::vector<models::ParameterUnit> SequenceClassifier::units() const {
  std::vector<models::ParameterUnit> units = ModuleModel::units();
  std::swap(units[0], units[1]);
  return units;
}

void SequenceClassifier::ResetParameters(std::size_t unit) {
  PLAIT_CHECK(unit <= 1) << "unit " << unit << " of 2";
  if (unit == 0) return DrawGruParameters(gru_.options().cell, gru_.parameters());
  models::DrawByFanIn(head_weight_, head_bias_);
}

std::string SequenceClassifier::Description() const {
  const GruConfig& cell = gru_.options().cell;
  return absl::StrCat(
      "SequenceClassifier(\n  (gru): GRU(", cell.input, ", ", cell.hidden, ", num_layers=", cell.layers,
      ", batch_first=True)\n  (head): ", models::LinearText(cell.hidden, head_bias_.size(0), true), "\n)");
}

}  // namespace plait::gru
