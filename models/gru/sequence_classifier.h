// Sequence classification: a GRU, and a linear head on the last state of its top layer.
//
//   plait::gru::SequenceClassifier classifier({.gru = {.cell = {9, 100, 2}}, .classes = 6}, at::kFloat);
//   at::Tensor scores = classifier.Forward(x);      // (batch, steps, 9) -> logits (batch, 6)
//   models::LossSum loss = models::RunModel(classifier, {.inputs = x, .targets = labels});
//
// The whole GRU is one block: x -> the top layer's last state, (batch, hidden). To solve the GRU layer-parallel
// (models/gru/layer_parallel), pass a runner:
//
//   [&](std::size_t, const BlockState& x, const BlockContext&) -> BlockState {
//     return {.hidden = layer_parallel.Forward(x.hidden).select(0, layers - 1)};
//   }
//
// State dict: gru.weight_ih_l0, ..., head.weight (classes, hidden), head.bias. Units: the GRU, then the root
// unit with the head, in the order in which initial values are drawn (models/gru/parameters.h, torch::nn::Linear).
// The loss is the cross entropy; negative labels are ignored. Local.
#ifndef PLAIT_MODELS_GRU_SEQUENCE_CLASSIFIER_H_
#define PLAIT_MODELS_GRU_SEQUENCE_CLASSIFIER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "models/gru/serial.h"
#include "models/module_model.h"

namespace plait::gru {

struct SequenceClassifierOptions {
  SerialGruOptions gru;
  std::int64_t classes = 2;
};

class SequenceClassifier final : public models::ModuleModel {
 public:
  // On the meta device nothing is allocated or drawn.
  SequenceClassifier(const SequenceClassifierOptions& options, const at::TensorOptions& tensor_options);

  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  at::Tensor Output(const models::BlockState& state) override;
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  std::vector<models::ParameterUnit> units() const override;
  void ResetParameters(std::size_t unit) override;
  // In the format in which PyTorch prints modules.
  std::string Description() const override;

  SerialGru& gru() { return gru_; }

 private:
  SerialGru gru_;
  at::Tensor head_weight_, head_bias_;
};

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_SEQUENCE_CLASSIFIER_H_
