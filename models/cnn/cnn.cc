#include "models/cnn/cnn.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plait::cnn {
namespace {

constexpr std::int64_t kKernel = 3, kPool = 2;
// What both convolutions take off rows and columns.
constexpr std::int64_t kBorder = 2 * (kKernel - 1);

std::int64_t Features(const CnnOptions& options) {
  return options.conv2_channels * ((options.rows - kBorder) / kPool) * ((options.columns - kBorder) / kPool);
}

void CheckOptions(const CnnOptions& options) {
  PLAIT_CHECK(std::min(options.rows, options.columns) >= kBorder + kPool)
      << "images of " << options.rows << " x " << options.columns;
  PLAIT_CHECK(std::min(options.conv1_channels, options.conv2_channels) > 0)
      << options.conv1_channels << " and " << options.conv2_channels << " channels";
  PLAIT_CHECK(std::min(options.hidden, options.classes) > 0)
      << options.hidden << " hidden, " << options.classes << " classes";
  for (const double p : {options.dropout1, options.dropout2})
    PLAIT_CHECK(p >= 0 && p <= 1) << "dropout " << p;
}

struct CnnModule final : torch::nn::Module {
  CnnModule(const CnnOptions& options, const at::TensorOptions& tensor_options)
      : Module("Net"),
        conv1(register_module("conv1", torch::nn::Conv2d(1, options.conv1_channels, kKernel))),
        conv2(register_module("conv2",
                              torch::nn::Conv2d(options.conv1_channels, options.conv2_channels, kKernel))),
        dropout1(register_module("dropout1", torch::nn::Dropout(options.dropout1))),
        dropout2(register_module("dropout2", torch::nn::Dropout(options.dropout2))),
        fc1(register_module("fc1", torch::nn::Linear(Features(options), options.hidden))),
        fc2(register_module("fc2", torch::nn::Linear(options.hidden, options.classes))) {
    to(tensor_options.device(), c10::typeMetaToScalarType(tensor_options.dtype()));
  }

  at::Tensor Forward(const at::Tensor& x) {
    at::Tensor y = at::relu(conv1->forward(x));
    y = at::max_pool2d(at::relu(conv2->forward(y)), {kPool, kPool});
    y = at::relu(fc1->forward(dropout1->forward(y).flatten(1)));
    return at::log_softmax(fc2->forward(dropout2->forward(y)), 1);
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Dropout dropout1, dropout2;
  torch::nn::Linear fc1, fc2;
};

std::string ConvText(std::int64_t in, std::int64_t out) {
  return absl::StrCat("Conv2d(", in, ", ", out, ", kernel_size=(3, 3), stride=(1, 1))");
}

// Python prints a float with a point, also where it is whole.
std::string DropoutText(double p) {
  const std::string number = absl::StrCat(p);
  const bool whole = !absl::StrContains(number, '.') && !absl::StrContains(number, 'e');
  return absl::StrCat("Dropout(p=", number, whole ? ".0" : "", ", inplace=False)");
}

std::string LinearText(std::int64_t in, std::int64_t out) {
  return absl::StrCat("Linear(in_features=", in, ", out_features=", out, ", bias=True)");
}

}  // namespace

Cnn::Cnn(const CnnOptions& options, const at::TensorOptions& tensor_options) : options_(options) {
  CheckOptions(options);
  module_ = std::make_shared<CnnModule>(options, tensor_options);
}

at::Tensor Cnn::Forward(const at::Tensor& x) const {
  PLAIT_CHECK(x.dim() == 4 && x.size(1) == 1 && x.size(2) == options_.rows && x.size(3) == options_.columns)
      << "images of shape " << x.sizes() << ", expected (batch, 1, " << options_.rows << ", "
      << options_.columns << ")";
  return static_cast<CnnModule&>(*module_).Forward(x);
}

void Cnn::SetTraining(bool training) { module_->train(training); }

std::string Cnn::Description() const {
  return absl::StrCat("Net(\n",                                                                         //
                      "  (conv1): ", ConvText(1, options_.conv1_channels), "\n",                        //
                      "  (conv2): ", ConvText(options_.conv1_channels, options_.conv2_channels), "\n",  //
                      "  (dropout1): ", DropoutText(options_.dropout1), "\n",                           //
                      "  (dropout2): ", DropoutText(options_.dropout2), "\n",                           //
                      "  (fc1): ", LinearText(Features(options_), options_.hidden), "\n",               //
                      "  (fc2): ", LinearText(options_.hidden, options_.classes), "\n", ")");
}

std::vector<at::Tensor> Cnn::parameters() const { return module_->parameters(); }

}  // namespace plait::cnn
