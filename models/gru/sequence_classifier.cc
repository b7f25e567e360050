#include "models/gru/sequence_classifier.h"

#include <torch/nn/modules/linear.h>

namespace plait::gru {
namespace {

struct ClassifierModule final : torch::nn::Module {
  ClassifierModule(std::shared_ptr<torch::nn::Module> gru, const SequenceClassifierOptions& options,
                   const at::TensorOptions& tensor_options)
      : Module("SequenceClassifier") {
    register_module("gru", std::move(gru));
    head = register_module("head", torch::nn::Linear(options.gru.cell.hidden, options.classes));
    head->to(tensor_options.device(), c10::typeMetaToScalarType(tensor_options.dtype()));
  }

  torch::nn::Linear head = nullptr;
};

}  // namespace

SequenceClassifier::SequenceClassifier(const SequenceClassifierOptions& options,
                                       const at::TensorOptions& tensor_options)
    : gru_(options.gru, tensor_options),
      module_(std::make_shared<ClassifierModule>(gru_.module(), options, tensor_options)) {}

at::Tensor SequenceClassifier::Forward(const at::Tensor& x) { return Head(gru_.Forward(x).output); }

at::Tensor SequenceClassifier::Head(const at::Tensor& state) const {
  return static_cast<ClassifierModule&>(*module_).head->forward(state);
}

std::vector<at::Tensor> SequenceClassifier::parameters() const { return module_->parameters(); }

}  // namespace plait::gru
