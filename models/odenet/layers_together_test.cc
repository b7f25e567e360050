// Batched calls of several layers against single calls.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <vector>

#include "models/odenet/odenet.h"
#include "models/stackable_block.h"

namespace plait::odenet {
namespace {

const OdeNetOptions kDense = {.sample = {3}, .channels = 6, .layers = 8, .final_time = 2};
const OdeNetOptions kSpectra = {.form = Form::kConv1d,
                                .sample = {7},
                                .channels = 3,
                                .layers = 8,
                                .final_time = 2,
                                .activation = Activation::kSmoothRelu};
const OdeNetOptions kImages = {.form = Form::kConv2d,
                               .sample = {4, 5},
                               .channels = 2,
                               .layers = 8,
                               .final_time = 0,
                               .activation = Activation::kRelu};

at::Tensor State(const OdeNetOptions& o) {
  std::vector<std::int64_t> shape = {2, o.channels};
  if (o.form != Form::kDense) shape.insert(shape.end(), o.sample.begin(), o.sample.end());
  return at::randn(shape, at::kDouble);
}

// Layers 1, 3, 5, ... of the network.
std::vector<models::BlockCall> CallsOf(const OdeNet& net, bool one_step) {
  std::vector<models::BlockCall> calls;
  for (std::size_t layer = 1; layer < net.blocks().size(); layer += 2) {
    const double dt = one_step ? 4 : static_cast<double>(layer);
    calls.push_back({net.blocks()[layer].get(), State(net.options()), {.dt = dt, .final = false}});
  }
  return calls;
}

std::vector<at::Tensor> Together(const std::vector<models::BlockCall>& calls) {
  return dynamic_cast<models::StackableBlock&>(*calls[0].block).ForwardMany(calls);
}

void ExpectThoseOfForward(const std::vector<models::BlockCall>& calls) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> results = Together(calls);
  ASSERT_EQ(results.size(), calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const at::Tensor expected = calls[i].block->Forward({calls[i].hidden}, calls[i].context).hidden;
    ASSERT_EQ(results[i].sizes(), expected.sizes());
    // Two products of at most 18 terms, of numbers of order 10.
    EXPECT_LE((results[i] - expected).abs().max().item<double>(), 10 * 2 * 2 * 18 * 0x1p-53 * 10) << i;
    EXPECT_GT((results[i] - calls[i].hidden).abs().max().item<double>(), 0.01) << i;
  }
}

TEST(LayersTogether, GiveWhatForwardGives) {
  at::manual_seed(7);
  for (OdeNetOptions o : {kDense, kSpectra, kImages}) {
    for (const TimeWeights weights :
         {TimeWeights::kPerLayer, TimeWeights::kPiecewise, TimeWeights::kSpline}) {
      o.time_weights = weights;
      o.controls = 4;
      const OdeNet net(o, at::kDouble);
      ExpectThoseOfForward(CallsOf(net, /*one_step=*/false));
      ExpectThoseOfForward(CallsOf(net, /*one_step=*/true));
    }
  }
}

TEST(LayersTogether, AreNotGivenWhereCallsDiffer) {
  const OdeNet net(kDense, at::kDouble);
  OdeNetOptions wide = kDense, other = kDense;
  wide.channels = 7;
  other.activation = Activation::kRelu;
  std::vector<models::BlockCall> calls = CallsOf(net, true);
  EXPECT_FALSE(Together(calls).empty());
  calls[1].hidden = calls[1].hidden.narrow(0, 0, 1);
  EXPECT_TRUE(Together(calls).empty());
  for (const OdeNetOptions& o : {wide, other}) {
    const OdeNet another(o, at::kDouble);
    calls = CallsOf(net, true);
    calls[2] = CallsOf(another, true)[2];
    EXPECT_TRUE(Together(calls).empty());
  }
}

TEST(LayersTogether, IsOffOnProcessors) {
  const OdeNet net(kDense, at::kDouble);
  const auto& layer = dynamic_cast<const models::StackableBlock&>(*net.blocks()[0]);
  EXPECT_FALSE(layer.PrefersMany(at::kCPU));
  EXPECT_TRUE(layer.PrefersMany(at::Device(at::kCUDA, 0)));
}

}  // namespace
}  // namespace plait::odenet
