// Names, sizes and a hand-made network; torchvision_test.py compares with torchvision.
#include "models/resnet/resnet.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/block_model.h"

namespace plait::resnet {
namespace {

using ::testing::HasSubstr;

ResNet Named(const char* name, const at::TensorOptions& options) { return {*ResNetNamed(name), options}; }

// Of torchvision's documentation.
TEST(ResNet, HasThePublishedNumberOfParameters) {
  const std::map<const char*, std::int64_t> published = {
      {"resnet18", 11'689'512}, {"resnet34", 21'797'672}, {"resnet50", 25'557'032}};
  for (const auto& [name, count] : published) {
    std::int64_t found = 0;
    for (const models::ParameterUnit& unit : Named(name, at::TensorOptions(at::kMeta)).units()) {
      for (const models::ParameterSpec& one : unit.parameters) {
        if (one.role == models::ParameterRole::kTrained) found += one.tensor.numel();
      }
    }
    EXPECT_EQ(found, count) << name;
  }
  EXPECT_THAT(std::string(ResNetNamed("resnet20").status().message()), HasSubstr("resnet18, resnet34 or"));
}

TEST(ResNet, ListsEveryTensorOnceAndRedrawsUnitByUnit) {
  at::manual_seed(3);
  const ResNet resnet = Named("resnet18", at::kFloat);
  std::vector<at::Tensor> drawn;
  std::set<std::string> names;
  for (const models::ParameterUnit& unit : resnet.units()) {
    for (const models::ParameterSpec& one : unit.parameters) {
      EXPECT_TRUE(names.insert(one.name).second) << one.name;
      drawn.push_back(one.tensor.detach().clone());
      one.tensor.detach().fill_(7);
    }
  }
  EXPECT_EQ(names.size(), 20u * 5 + 2);  // convolutions with batch norm, and fc
  EXPECT_TRUE(names.contains("layer2.0.downsample.1.running_var"));
  at::manual_seed(3);
  ResNet again = Named("resnet18", at::kFloat);
  const std::vector<models::ParameterUnit> units = again.units();
  at::manual_seed(3);
  std::size_t at = 0;
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    again.ResetParameters(unit);
    for (const models::ParameterSpec& one : units[unit].parameters) {
      EXPECT_TRUE(one.tensor.detach().equal(drawn[at++])) << one.name;
    }
  }
}

TEST(ResNet, NormalizesAsTorchvisionDoes) {
  at::Tensor pixels = at::zeros({1, 2, 2, 3}, at::kByte);
  pixels.select(1, 1).select(1, 0).fill_(255);  // row 1, column 0
  const at::Tensor x = ImageNetInputs(pixels);
  ASSERT_EQ(x.sizes(), at::IntArrayRef({1, 3, 2, 2}));
  const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(x[0][c][1][0].item<double>(), (1 - mean[c]) / deviation[c], 4e-7);  // 1.5 ulp of 2.7
    EXPECT_NEAR(x[0][c][0][1].item<double>(), -mean[c] / deviation[c], 4e-7);
  }
}

// Batches are independent: statistics are the running ones, in training mode too.
TEST(ResNet, AnImageHasTheSameFeaturesInAnyBatch) {
  const at::NoGradGuard no_grad;
  at::manual_seed(5);
  ResNet resnet = Named("resnet18", at::kDouble);
  const at::Tensor x = at::ones({2, 3, 40, 33}, at::kDouble).normal_();
  const at::Tensor both = resnet.Forward(x);
  ASSERT_EQ(both.sizes(), at::IntArrayRef({2, 1000}));
  resnet.SetTraining(true);
  const at::Tensor one = resnet.Forward(x.narrow(0, 1, 1));
  // Sums of up to 4608 products in another order, 18 layers.
  const double bound = 18 * 4608 * 1.1e-16 * both.abs().max().item<double>();
  EXPECT_LT(one[0].sub(both[1]).abs().max().item<double>(), bound);
}

}  // namespace
}  // namespace plait::resnet
