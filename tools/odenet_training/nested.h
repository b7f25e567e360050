// Nested iteration: a coarse network is trained first, and its weights are interpolated to the next finer one.
//
//   for l = L - 1 ... 0: train network l for its epochs; weights of l - 1 = P weights of l
//
// (Cyr, Guenther, Schroder, "Multilevel initialization for layer-parallel deep neural network training", arXiv:1912.08974,
// algorithm 1.) Network l has layers / cfactor^l layers over the same time, so that its steps are longer. A run without
// nested iteration has one level.
#ifndef PLAIT_TOOLS_ODENET_TRAINING_NESTED_H_
#define PLAIT_TOOLS_ODENET_TRAINING_NESTED_H_

#include <vector>

#include "absl/status/statusor.h"
#include "tools/odenet_training/odenet_task.h"
#include "tools/odenet_training/problem.h"
#include "tools/odenet_training/settings.h"
#include "tools/training/program.h"
#include "tools/training/sharded_model.h"

namespace plait::odenet_training {

// Collective. The masters of all ranks on all ranks, in their own type, without buffers, which hold what a level has of
// its own: its points in time. Errors of offloaded masters, the same on all ranks.
absl::StatusOr<Weights> MastersOfAllRanks(training::ShardedModel& model);

// Weights of a network with `factor` times as many layers as the coarse one. Layer i takes those of coarse layer
// i / factor (piecewise constant); `linear`: between those of i / factor and the next one, as far as i is from the first
// (the last ones stay constant). Other parameters, control points among them, stay as they are. Local.
Weights Refined(const Weights& coarse, int factor, bool linear);

// `settings` without files and checkpoints, for an additional run.
OdeNetSettings WithoutFiles(OdeNetSettings settings);

// A run with the same ranks and console as `run` and other settings, which must outlive it; without a checkpoint.
training::Run WithSettings(const training::Run& run, OdeNetSettings& settings);

// Collective. Trains all levels, coarse ones serially if they have too few layers for the grid of --lp-levels. Files
// are written for the finest level, checkpoints for all: a resumed run continues at the level of its checkpoint.
// Returns the validations of all levels. `prints`: whether to print the lines of the levels. DATA_LOSS for a
// checkpoint of a level that the run does not have.
absl::StatusOr<std::vector<Point>> TrainLevels(const OdeNetSettings& settings, training::Run& run,
                                               const Problem& problem, bool prints);

}  // namespace plait::odenet_training

#endif  // PLAIT_TOOLS_ODENET_TRAINING_NESTED_H_
