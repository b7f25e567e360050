// Both parts together equal one backward pass; the first computes no gradient of a parameter, the second repeats
// nothing of the first, and each matrix product is computed once.
#include "parallel/pipeline/split_backward.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <string>
#include <vector>

namespace plait::parallel {
namespace {

constexpr std::int64_t kWidth = 6, kRows = 5, kVocabulary = 7;

at::Tensor Numbers(std::vector<std::int64_t> sizes, double seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor n = at::arange(count, at::kDouble) + seed;
  return at::sin(n * n * 0.37).view(sizes);
}

// An embedding, blocks with a norm whose products are tied in pairs (blocks 0 and 2), and a head.
struct Net {
  at::Tensor table = Numbers({kVocabulary, kWidth}, 1).requires_grad_(true);
  std::vector<at::Tensor> weights, norms;
  Net() {
    for (int block = 0; block < 3; ++block) {
      weights.push_back(block == 2 ? weights[0]
                                   : Numbers({kWidth, kWidth}, 10 + 5 * block).requires_grad_(true));
      norms.push_back((Numbers({kWidth}, 30 + block) + 2).requires_grad_(true));
    }
  }
  at::Tensor Embed() const { return at::embedding(table, at::arange(kRows, at::kLong)); }
  at::Tensor Blocks(at::Tensor x) const {
    for (int block = 0; block < 3; ++block) {
      const at::Tensor n = at::layer_norm(x, {kWidth}, norms[block]);
      x = x + at::tanh(at::mm(n, weights[block].t()));
    }
    return x;
  }
  std::vector<at::Tensor> Parameters() const {
    return {table, weights[0], weights[1], norms[0], norms[1], norms[2]};
  }
};

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  ASSERT_TRUE(actual.defined()) << what;
  EXPECT_LE((actual - expected).abs().max().item<double>(), 1e-14) << what;
}

bool HasGradients(const Net& net) {
  for (const at::Tensor& p : net.Parameters()) {
    if (p.grad().defined()) return true;
  }
  return false;
}

const at::Tensor& GradientOfOutput() {
  static const at::Tensor gradient = Numbers({kRows, kWidth}, 77);
  return gradient;
}

TEST(SplitBackward, IsOneBackwardFromALeaf) {
  const Net whole, split;
  const at::Tensor x = Numbers({kRows, kWidth}, 50).requires_grad_(true);
  whole.Blocks(x).backward(GradientOfOutput());
  const at::Tensor y = Numbers({kRows, kWidth}, 50).requires_grad_(true);
  SplitBackward backward;
  const std::vector<at::Tensor> of_inputs =
      backward.InputGradients({split.Blocks(y)}, {GradientOfOutput()}, {y});
  EXPECT_FALSE(HasGradients(split)) << "in the first part";
  ExpectClose(of_inputs[0], x.grad(), "input");
  backward.WeightGradients();
  EXPECT_FALSE(y.grad().defined());
  for (std::size_t i = 1; i < whole.Parameters().size(); ++i) {
    ExpectClose(split.Parameters()[i].grad(), whole.Parameters()[i].grad(), "parameter " + std::to_string(i));
  }
}

TEST(SplitBackward, AnEmbeddingBelongsToTheSecondPart) {
  const Net whole, split;
  whole.Blocks(whole.Embed()).backward(GradientOfOutput());
  const at::Tensor hidden = split.Embed();
  SplitBackward backward;
  backward.InputGradients({split.Blocks(hidden)}, {GradientOfOutput()}, {hidden});
  EXPECT_FALSE(HasGradients(split));
  backward.WeightGradients();
  for (std::size_t i = 0; i < whole.Parameters().size(); ++i) {
    ExpectClose(split.Parameters()[i].grad(), whole.Parameters()[i].grad(), "parameter " + std::to_string(i));
  }
}

// A first stage without an embedding, and an output that needs no input.
TEST(SplitBackward, OutputsWithoutInputsBelongToTheSecondPart) {
  const Net whole, split;
  const at::Tensor x = Numbers({kRows, kWidth}, 50), penalty = Numbers({}, 3);
  const auto outputs = [&](const Net& net) {
    return std::vector<at::Tensor>{net.Blocks(x), (net.weights[1] * net.weights[1]).sum()};
  };
  torch::autograd::backward(outputs(whole), {GradientOfOutput(), penalty});
  SplitBackward backward;
  EXPECT_FALSE(backward.InputGradients(outputs(split), {GradientOfOutput(), penalty}, {x})[0].defined());
  EXPECT_FALSE(HasGradients(split));
  backward.WeightGradients();
  for (std::size_t i = 1; i < whole.Parameters().size(); ++i) {
    ExpectClose(split.Parameters()[i].grad(), whole.Parameters()[i].grad(), "parameter " + std::to_string(i));
  }
}

// Tensors that only the first part needs are released: between the parts, only those of the second are kept.
TEST(SplitBackward, ReleasesTheRestOfTheGraph) {
  const Net net;
  const at::Tensor x = Numbers({kRows, kWidth}, 50).requires_grad_(true);
  at::Tensor before = at::mm(x, net.weights[0]), after = at::sin(before);
  const auto of_sine = before.storage().getWeakStorageImpl(),
             of_product = after.storage().getWeakStorageImpl();
  at::Tensor output = at::mm(after, net.weights[1]);
  before.reset();
  after.reset();
  SplitBackward backward;
  backward.InputGradients({output}, {GradientOfOutput()}, {x});
  output.reset();
  EXPECT_TRUE(of_sine.expired());
  EXPECT_FALSE(of_product.expired());
  backward.WeightGradients();
  EXPECT_TRUE(of_product.expired());
  EXPECT_TRUE(net.weights[0].grad().defined());
}

int products = 0;
std::unique_ptr<at::ObserverContext> CountProduct(const at::RecordFunction& function) {
  if (std::string(function.name()) == "aten::mm") ++products;
  return nullptr;
}

TEST(SplitBackward, ComputesEachProductOnce) {
  const Net net;
  const at::Tensor x = Numbers({kRows, kWidth}, 50).requires_grad_(true);
  const at::Tensor output = net.Blocks(x);
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(CountProduct));
  SplitBackward backward;
  products = 0;
  backward.InputGradients({output}, {GradientOfOutput()}, {x});
  EXPECT_EQ(products, 3);  // a product by a weight for each block
  products = 0;
  backward.WeightGradients();
  EXPECT_EQ(products, 3);
  at::removeCallback(handle);
}

}  // namespace
}  // namespace plait::parallel
