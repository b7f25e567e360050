#include "tools/odenet_training/odenet_task.h"

#include <gtest/gtest.h>

namespace plait::odenet_training {
namespace {

TEST(Regularisation, IsOfTheTimeThatWeightsStandFor) {
  OdeNetSettings settings;
  settings.tikhonov = 3;
  settings.tikhonov_time = 5;
  odenet::OdeNetOptions options = {.sample = {2}, .channels = 4, .layers = 8, .final_time = 2};
  const Regularisation of_layers = RegularisationOf(settings, options);
  EXPECT_DOUBLE_EQ(of_layers.weight_decay, 0.75);
  EXPECT_DOUBLE_EQ(of_layers.time_tikhonov, 20);
  options.time_weights = odenet::TimeWeights::kPiecewise;
  options.controls = 4;
  const Regularisation of_controls = RegularisationOf(settings, options);
  EXPECT_DOUBLE_EQ(of_controls.weight_decay, 3 * options.spacing());
  EXPECT_DOUBLE_EQ(of_controls.time_tikhonov, 0);
}

}  // namespace
}  // namespace plait::odenet_training
