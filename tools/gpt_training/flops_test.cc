// Against the published run: 46.3 % of an A100's 312 TFLOP/s.
#include "tools/gpt_training/flops.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/gpt/gpt.h"

namespace plait::gpt_training {
namespace {

TEST(FlopsTest, PublishedRun) {
  const gpt::GptOptions options = {.vocab_size = 65, .bias = false};  // 12/12/768, 1024 positions
  const double flops = gpt::FlopsPerToken(options, 1024);
  EXPECT_EQ(flops, 6.0 * 85003776 + 12.0 * 12 * 768 * 1024);
  // step=10 dt=0.282833 mfu=46.288281: 65,536 tokens a rank; the first value of its running mean. dt is
  // printed with 6 digits.
  EXPECT_NEAR(MfuPercent(flops, 65536, 0.282833, 312e12), 46.288281, 46.3 * 1e-5);
}

TEST(FlopsTest, NoPeakNoShare) { EXPECT_TRUE(std::isnan(MfuPercent(1e9, 10, 1, 0))); }

TEST(FlopsTest, AMachineCanMultiply) {
  // Between a megaflop and what no processor has.
  const double peak = MeasuredPeakFlops(c10::ScalarType::Float);
  EXPECT_GT(peak, 1e6);
  EXPECT_LT(peak, 1e17);
}

}  // namespace
}  // namespace plait::gpt_training
