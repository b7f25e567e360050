// Rates against numbers that nanoGPT's get_lr and PyTorch's StepLR gave in Python, and closed forms.
#include "parallel/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <utility>

namespace plait::parallel {
namespace {

TEST(LrSchedule, ConstantIsConstant) {
  const LrSchedule schedule = LrSchedule::Constant(3e-4);
  EXPECT_EQ(schedule.At(0), 3e-4);
  EXPECT_EQ(schedule.At(1'000'000), 3e-4);
}

// torch.optim.lr_scheduler.StepLR(SGD(lr=1e-3), step_size, gamma=0.7).get_last_lr() over ten epochs; the same
// bits.
TEST(LrSchedule, StepLrHasPyTorchsBits) {
  constexpr std::array<double, 10> kByOne = {0.001,
                                             0.0007,
                                             0.00049,
                                             0.000343,
                                             0.00024009999999999998,
                                             0.00016806999999999998,
                                             0.00011764899999999998,
                                             8.235429999999999e-05,
                                             5.764800999999999e-05,
                                             4.035360699999999e-05};
  constexpr std::array<double, 10> kByThree = {0.001,  0.001,   0.001,   0.0007,  0.0007,
                                               0.0007, 0.00049, 0.00049, 0.00049, 0.000343};
  const LrSchedule by_one = LrSchedule::StepLr({.lr = 1e-3, .step_size = 1, .gamma = 0.7});
  const LrSchedule by_three = LrSchedule::StepLr({.lr = 1e-3, .step_size = 3, .gamma = 0.7});
  for (std::size_t epoch = 0; epoch < kByOne.size(); ++epoch) {
    EXPECT_EQ(by_one.At(epoch), kByOne[epoch]) << epoch;
    EXPECT_EQ(by_three.At(epoch), kByThree[epoch]) << epoch;
  }
}

// learning_rate=1e-3, warmup_iters=100, lr_decay_iters=5000, min_lr=1e-4.
TEST(LrSchedule, WarmupCosineIsThatOfNanoGpt) {
  constexpr std::pair<std::int64_t, double> kExpected[] = {{0, 9.900990099009901e-06},
                                                           {1, 1.9801980198019803e-05},
                                                           {57, 0.0005742574257425743},
                                                           {99, 0.0009900990099009901},
                                                           {100, 0.001},
                                                           {101, 0.000999999907510999},
                                                           {777, 0.0009582709769707018},
                                                           {2550, 0.00055},
                                                           {4321, 0.00014197202806478138},
                                                           {4999, 0.00010000009248900101},
                                                           {5000, 0.0001},
                                                           {5001, 0.0001},
                                                           {90000, 0.0001}};
  const LrSchedule schedule =
      LrSchedule::WarmupDecay({.lr = 1e-3, .warmup_steps = 100, .decay_steps = 5000, .min_lr = 1e-4});
  // A cosine with an error of one ulp, and four further roundings, of numbers up to 1e-3.
  for (const auto& [step, lr] : kExpected) EXPECT_NEAR(schedule.At(step), lr, 6 * 0x1p-53 * 1e-3) << step;
}

TEST(LrSchedule, WithoutWarmupOrDecay) {
  const LrSchedule decay = LrSchedule::WarmupDecay({.lr = 2, .warmup_steps = 0, .decay_steps = 4});
  EXPECT_EQ(decay.At(0), 2);
  EXPECT_NEAR(decay.At(2), 1, 0x1p-52);
  EXPECT_EQ(decay.At(4), 0);
  const LrSchedule warmup =
      LrSchedule::WarmupDecay({.lr = 2, .warmup_steps = 3, .decay_steps = 3, .min_lr = 1});
  EXPECT_EQ(warmup.At(0), 0.5);
  EXPECT_EQ(warmup.At(2), 1.5);
  EXPECT_EQ(warmup.At(3), 1);
  constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(LrSchedule::WarmupDecay({.lr = 0x1p63, .warmup_steps = kEndless, .decay_steps = kEndless}).At(2),
            3);
}

// As get_linear_schedule_with_warmup of Hugging Face transformers, after the warm-up: lr (40 - step) / (40 - 8).
TEST(LrSchedule, LinearDecay) {
  const LrSchedule schedule =
      LrSchedule::WarmupDecay({.lr = 2e-3, .warmup_steps = 8, .decay_steps = 40, .decay = LrDecay::kLinear});
  constexpr std::pair<std::int64_t, double> kExpected[] = {{8, 2e-3},     {9, 0.0019375}, {24, 1e-3},
                                                           {39, 6.25e-5}, {40, 0},        {41, 0}};
  for (const auto& [step, lr] : kExpected) EXPECT_NEAR(schedule.At(step), lr, 6 * 0x1p-53 * 2e-3) << step;
}

// Constant after the warm-up; after a quarter of the last 16 steps, half of the way to min_lr is done.
TEST(LrSchedule, WarmupStableDecay) {
  const WarmupDecayOptions options = {.lr = 1,
                                      .warmup_steps = 4,
                                      .decay_steps = 100,
                                      .min_lr = 0.5,
                                      .decay = LrDecay::kSqrt,
                                      .stable_steps = 84};
  const LrSchedule schedule = LrSchedule::WarmupDecay(options);
  EXPECT_EQ(schedule.At(0), 0.2);
  for (const std::int64_t step : {4, 5, 50, 83, 84}) EXPECT_EQ(schedule.At(step), 1) << step;
  EXPECT_LT(schedule.At(85), 1);
  EXPECT_EQ(schedule.At(88), 0.75);
  EXPECT_EQ(schedule.At(93), 0.5 + 0.5 * (1 - 0.75));
  EXPECT_EQ(schedule.At(100), 0.5);
  EXPECT_EQ(schedule.At(1000), 0.5);
}

TEST(LrScheduleDeathTest, OptionsOutsideTheirBounds) {
  EXPECT_DEATH(LrSchedule::StepLr({.step_size = 0}), "step size 0");
  EXPECT_DEATH(LrSchedule::WarmupDecay({.warmup_steps = 5, .decay_steps = 4}), "decay until 4");
  EXPECT_DEATH(LrSchedule::WarmupDecay({.decay_steps = 4, .stable_steps = 5}),
               "stable until 5, decay until 4");
  EXPECT_DEATH((void)LrSchedule::Constant(1).At(-1), "step -1");
}

}  // namespace
}  // namespace plait::parallel
