// A GRU and a linear head on the last state of its top layer: class scores of sequences.
//
//   plait::gru::SequenceClassifier classifier({.gru = {.cell = {9, 100, 2}}, .classes = 6}, at::kFloat);
//   at::Tensor scores = classifier.Forward(x);      // x: (batch, steps, 9); (batch, 6), before softmax
//
// State dict: gru.weight_ih_l0, ..., head.weight (classes, hidden), head.bias; initial values are those of
// models/gru/parameters.h and torch::nn::Linear. A handle: copies share parameters.
#ifndef PLAIT_MODELS_GRU_SEQUENCE_CLASSIFIER_H_
#define PLAIT_MODELS_GRU_SEQUENCE_CLASSIFIER_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "models/gru/serial.h"

namespace plait::gru {

struct SequenceClassifierOptions {
  SerialGruOptions gru;
  std::int64_t classes = 2;
};

class SequenceClassifier {
 public:
  SequenceClassifier(const SequenceClassifierOptions& options, const at::TensorOptions& tensor_options);

  at::Tensor Forward(const at::Tensor& x);

  SerialGru& gru() { return gru_; }
  // Scores from the top layer's last state, (batch, hidden): for a GRU solved otherwise.
  at::Tensor Head(const at::Tensor& state) const;

  const std::shared_ptr<torch::nn::Module>& module() const { return module_; }
  std::vector<at::Tensor> parameters() const;

 private:
  SerialGru gru_;
  std::shared_ptr<torch::nn::Module> module_;
};

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_SEQUENCE_CLASSIFIER_H_
