// Scales against those of torch.amp.GradScaler on the same overflows.
#include "parallel/optim/loss_scaler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>

namespace plait::parallel {
namespace {

// torch.amp.GradScaler(init_scale=1024, growth_interval=3) of PyTorch 2.11.0, its scale after each update.
constexpr char kOverflows[] = "0000100000001100010000000000";
constexpr std::array<double, 28> kScales = {1024, 1024, 2048, 2048, 1024, 1024, 1024, 2048, 2048, 2048,
                                            4096, 4096, 2048, 1024, 1024, 1024, 2048, 1024, 1024, 1024,
                                            2048, 2048, 2048, 4096, 4096, 4096, 8192, 8192};
constexpr LossScalerOptions kShort = {.initial_scale = 1024, .interval = 3};

TEST(LossScaler, BeginsAsPyTorchDoes) {
  LossScaler scaler({});
  EXPECT_EQ(scaler.scale(), 65536);
  for (int step = 0; step < 1999; ++step) scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 131072);
  scaler.Update(true);
  EXPECT_EQ(scaler.scale(), 65536);
}

TEST(LossScaler, FollowsOverflowsAsPyTorchDoes) {
  LossScaler scaler(kShort);
  for (std::size_t step = 0; step < kScales.size(); ++step) {
    scaler.Update(kOverflows[step] == '1');
    EXPECT_EQ(scaler.scale(), kScales[step]) << "step " << step;
  }
}

TEST(LossScaler, GoesOnFromItsStateAtAnyStep) {
  for (std::size_t stop = 0; stop < kScales.size(); ++stop) {
    LossScaler before(kShort), after(kShort);
    for (std::size_t step = 0; step < stop; ++step) before.Update(kOverflows[step] == '1');
    ASSERT_TRUE(after.Restore(before.state()).ok());
    for (std::size_t step = stop; step < kScales.size(); ++step) {
      after.Update(kOverflows[step] == '1');
      ASSERT_EQ(after.scale(), kScales[step]) << "stopped at " << stop << ", step " << step;
    }
  }
}

TEST(LossScaler, DoesNotGrowBeyondFloat32) {
  LossScaler scaler({.initial_scale = 0x1p127, .interval = 1});
  for (int step = 0; step < 3; ++step) scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 0x1p127);
}

// From 2^16 to 2^-24.
TEST(LossScaler, GivesUpWhereNoScaleHelps) {
  LossScaler scaler({});
  for (int overflow = 0; overflow < 40; ++overflow) {
    EXPECT_TRUE(scaler.can_back_off()) << overflow;
    scaler.Update(true);
  }
  EXPECT_EQ(scaler.scale(), 0x1p-24);
  EXPECT_FALSE(scaler.can_back_off());
  EXPECT_FALSE(LossScaler({.enabled = false}).can_back_off());
}

TEST(LossScaler, DisabledItIsOne) {
  LossScaler scaler({.interval = 1, .enabled = false});
  scaler.Update(true);
  scaler.Update(false);
  EXPECT_TRUE(scaler.Restore({.scale = 8, .good_steps = 0}).ok());
  EXPECT_EQ(scaler.scale(), 1);
}

TEST(LossScaler, RefusesStatesThatAreNone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const LossScalerState& state :
       {LossScalerState{0, 0}, LossScalerState{-1, 0}, LossScalerState{kInfinity, 0},
        LossScalerState{std::nan(""), 0}, LossScalerState{1, -1}, LossScalerState{1, 3}}) {
    LossScaler scaler(kShort);
    EXPECT_EQ(scaler.Restore(state).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(scaler.scale(), 1024);
  }
}

TEST(LossScalerDeathTest, OptionsOutsideTheirBounds) {
  EXPECT_DEATH(LossScaler({.initial_scale = 0}), "scale 0");
  EXPECT_DEATH(LossScaler({.growth = 1}), "growth 1");
  EXPECT_DEATH(LossScaler({.backoff = 1}), "backoff 1");
  EXPECT_DEATH(LossScaler({.interval = 0}), "interval 0");
}

}  // namespace
}  // namespace plait::parallel
