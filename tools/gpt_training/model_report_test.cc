// The published run's lines, from a model without memory.
#include "tools/gpt_training/model_report.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/gpt/gpt.h"

namespace plait::gpt_training {
namespace {

TEST(ParameterLinesTest, ArePublished) {
  const gpt::Gpt model({.vocab_size = 65, .bias = false}, at::TensorOptions(at::kMeta));
  EXPECT_THAT(ParameterLines(model, gpt::ParameterCount(model.options(), false)),
              testing::ElementsAre("number of parameters: 85.00M", "Model size: num_params=85003776",
                                   "num decayed parameter tensors: 50, with 85,771,008 parameters",
                                   "num non-decayed parameter tensors: 25, with 19,200 parameters"));
}

TEST(OptimizerTextTest, HasTwoGroups) {
  const std::string text = OptimizerText({.lr = 6e-4, .beta2 = 0.95, .weight_decay = 0.1});
  EXPECT_THAT(text, testing::HasSubstr("Parameter Group 0\n    betas: (0.9, 0.95)\n"));
  EXPECT_THAT(text, testing::HasSubstr("lr: 0.0006\n    weight_decay: 0.1\n\nParameter Group 1\n"));
  EXPECT_THAT(text, testing::EndsWith("weight_decay: 0\n)"));
  EXPECT_THAT(text, testing::StartsWith("AdamW (\n"));
}

TEST(OptimizerTextTest, NamesMuon) {
  const std::string text = OptimizerText(
      {.kind = parallel::OptimizerKind::kMuon, .lr = 0.02, .momentum = 0.95, .weight_decay = 0.1});
  EXPECT_THAT(text, testing::StartsWith(
                        "Muon (momentum: 0.95, lr: 0.02, weight_decay: 0.1), AdamW (\nParameter Group 0\n"));
}

}  // namespace
}  // namespace plait::gpt_training
