// Simulated times against times computed by hand. Costs are invented; nothing is measured.
#include "mgrit/scaling/scaling_model.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace plait::mgrit::scaling {
namespace {

// Every evaluation takes one second, nothing else any.
Costs UnitSteps() {
  Costs costs;
  for (const WorkKind kind : {WorkKind::kFineStep, WorkKind::kKeptFineStep, WorkKind::kCoarseStep,
                              WorkKind::kFineAdjoint, WorkKind::kKeptFineAdjoint, WorkKind::kCoarseAdjoint}) {
    costs.work[kind] = 1;
  }
  return costs;
}

BatchShape Shape(const LayerParallelOptions& solver, std::int64_t steps, int ranks) {
  return {.solver = solver, .steps = steps, .ranks = ranks};
}

LayerParallelOptions OneLevel() {
  LayerParallelOptions options = MakeLayerParallelOptions(1, 4, 1, 1);
  options.forward.skip_downcycle = options.backward.skip_downcycle = false;
  return options;
}

LayerParallelOptions FullMultigrid() {
  LayerParallelOptions options = MakeLayerParallelOptions(4, 2, 2, 1);
  options.forward.fmg = options.backward.fmg = true;
  return options;
}

// Sums of up to a few hundred whole numbers, with fractions of machine time in between: rounding alone.
constexpr double kRounding = 1e-9;

TEST(ScalingModel, OneRankTakesTheSumOfItsWork) {
  for (const LayerParallelOptions& solver :
       {MakeLayerParallelOptions(3, 4, 2, 1), MakeLayerParallelOptions(2, 8, 3, 2), FullMultigrid()}) {
    const BatchShape shape = Shape(solver, 64, 1);
    const RankTrace trace = TraceBatch(shape)[0];
    double evaluations = 0;
    for (const std::int64_t steps : trace.forward_steps) evaluations += static_cast<double>(steps);
    for (const std::int64_t steps : trace.backward_steps) evaluations += static_cast<double>(steps);
    EXPECT_NEAR(PredictBatch(shape, UnitSteps(), {.cores = 1}), evaluations, kRounding);
  }
}

// A serial sweep passed from rank to rank takes as long as on one, and a message more for each border; so
// does its adjoint. One level: 2 x 16 steps; 3 borders each way; a broadcast of 2 stages after each solve.
// The gradients' messages reach rank 0 while it still steps.
TEST(ScalingModel, AChainDoesNotScale) {
  Costs costs = UnitSteps();
  EXPECT_NEAR(PredictBatch(Shape(OneLevel(), 16, 4), costs, {.cores = 4}), 32, kRounding);
  costs.latency = 0.125;
  EXPECT_NEAR(PredictBatch(Shape(OneLevel(), 16, 4), costs, {.cores = 4}), 32 + (2 * 3 + 2 + 2) * 0.125,
              kRounding);
}

// Two levels, one skipped iteration: the coarse solve is a chain of 4 steps forward and 4 backward, the final
// F-sweep of 3 steps runs in parallel on all 4 ranks. With one core it does not.
TEST(ScalingModel, RelaxationScalesAsFarAsThereAreCores) {
  const BatchShape shape = Shape(MakeLayerParallelOptions(2, 4, 1, 1), 16, 4);
  EXPECT_NEAR(PredictBatch(shape, UnitSteps(), {.cores = 4}), 2 * (4 + 3), kRounding);
  EXPECT_NEAR(PredictBatch(shape, UnitSteps(), {.cores = 1}), 2 * (4 + 4 * 3), kRounding);
}

TEST(ScalingModel, ContentionSlowsParallelWorkAlone) {
  const BatchShape shape = Shape(MakeLayerParallelOptions(2, 4, 1, 1), 16, 4);
  // The chain runs beside the F-sweeps of ranks that are done with it: 4 seconds forward pass before the last
  // rank may relax; from the first rank's coarse step on, two ranks compute. Bounds: all work slowed, or the
  // F-sweeps alone.
  const double slowed = PredictBatch(shape, UnitSteps(), {.cores = 4, .contention = 2});
  EXPECT_GT(slowed, 2 * (4 + 3) + kRounding);
  EXPECT_LE(slowed, 2 * 2 * (4 + 3) + kRounding);
}

// A chain of two ranks on one core: the second waits for the first's state, then the first for the second's
// adjoint, then the second for the sum of the gradients. The first waits for the last state as well, but
// while the second already steps back.
TEST(ScalingModel, RanksThatShareCoresPayForTheHandOver) {
  const BatchShape shape = Shape(OneLevel(), 4, 2);
  const double free = PredictBatch(shape, UnitSteps(), {.cores = 1});
  EXPECT_NEAR(PredictBatch(shape, UnitSteps(), {.cores = 1, .hand_over = 0.25}), free + 3 * 0.25, kRounding);
  EXPECT_NEAR(PredictBatch(shape, UnitSteps(), {.cores = 2, .hand_over = 0.25}), free, kRounding);
}

// Serial propagation: the chain, with the agreement on a finite end after each solve.
TEST(ScalingModel, SerialPropagationIsAChain) {
  BatchShape shape = Shape(MakeLayerParallelOptions(2, 4, 1, 1), 16, 4);
  shape.propagation = Propagation::kSerial;
  EXPECT_NEAR(PredictBatch(shape, UnitSteps(), {.cores = 4}), 32, kRounding);
}

// Parameters of each step: gradients are computed side by side and cost no message.
TEST(ScalingModel, OwnGradientsRunInParallel) {
  Costs costs;
  costs.work[WorkKind::kGradient] = 1;
  costs.gradient_bytes = 1000;
  costs.byte = 1;
  BatchShape shape = Shape(MakeLayerParallelOptions(2, 4, 1, 1), 16, 4);
  shape.shares_parameters = false;
  EXPECT_NEAR(PredictBatch(shape, costs, {.cores = 4}), 4, kRounding);
}

TEST(ScalingModel, BytesAreCharged) {
  Costs costs;
  costs.byte = 1;
  costs.state_bytes = 1;
  // One coarse state each way over the border of two ranks, and the last state broadcast.
  const BatchShape shape = Shape(MakeLayerParallelOptions(2, 4, 1, 1), 8, 2);
  const RankTrace first = TraceBatch(shape)[0];
  EXPECT_EQ(first.forward_messages, 2);  // the coarse state, and the corrected C-point
  EXPECT_NEAR(PredictBatch(shape, costs, {.cores = 2}), 2 * 2 + 1, kRounding);
  costs.gradient_bytes = 10;  // one message up the tree, one broadcast
  EXPECT_NEAR(PredictBatch(shape, costs, {.cores = 2}), 2 * 2 + 1 + 20, kRounding);
}

}  // namespace
}  // namespace plait::mgrit::scaling
