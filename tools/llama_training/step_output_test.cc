// Against a published line.
#include "tools/llama_training/step_output.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plait::llama_training {
namespace {

text_training::StepNumbers Published() {
  return {.report = {.step = 1,
                     .loss = 10.863029,
                     .dt_seconds = 12.088833,
                     .forward_seconds = 11.56225,
                     .backward_seconds = 0.526583,
                     .slowest_seconds = 12.5},
          .tokens = 2048,
          .mfu_percent = std::nan("")};
}

TEST(LlamaOutput, CountsIterationsFromZero) {
  EXPECT_EQ(LlamaOutput(false).line(Published()),
            "iter=0 loss=10.863029 dt=12.088833 dtf=11.562250 dtb=0.526583 tps=163.840000")
      << "2048 tokens in the 12.5 s of the slowest rank";
}

TEST(LlamaOutput, AddsWhatWasMeasured) {
  text_training::StepNumbers step = Published();
  step.mfu_percent = 12.5;
  step.losses = {.train = 4.5, .validation = 4.75};
  EXPECT_EQ(LlamaOutput(true).line(step),
            "iter=0 loss=10.863029 dt=12.088833 dtf=11.562250 dtb=0.526583 tps=163.840000 "
            "mfu=12.500000 train_loss=4.500000 val_loss=4.750000");
}

TEST(LlamaOutput, RecordsItsMetricsInTheirOrder) {
  for (const bool of_text : {false, true}) {
    const text_training::StepOutput output = LlamaOutput(of_text);
    const std::vector<data::Scalar> scalars = output.scalars(Published());
    ASSERT_EQ(scalars.size(), of_text ? 10u : 8u);
    ASSERT_EQ(scalars.size(), output.metrics.size());
    for (std::size_t i = 0; i < scalars.size(); ++i) {
      EXPECT_EQ(scalars[i].name, output.metrics[i].metric.name);
    }
    EXPECT_EQ(scalars[0].value, 0);
    EXPECT_EQ(scalars[1].value, 10.863029);
    EXPECT_TRUE(std::isnan(scalars.back().value));  // no peak, or no estimate
  }
}

}  // namespace
}  // namespace plait::llama_training
