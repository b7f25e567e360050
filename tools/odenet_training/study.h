// Validation accuracies of many runs with and without nested iteration: the table of arXiv:1912.08974 for Peaks.
#ifndef PLAIT_TOOLS_ODENET_TRAINING_STUDY_H_
#define PLAIT_TOOLS_ODENET_TRAINING_STUDY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/odenet_training/problem.h"
#include "tools/odenet_training/settings.h"
#include "tools/training/program.h"

namespace plait::odenet_training {

struct Spread {
  double mean = 0, median = 0, most = 0, least = 0, deviation = 0;  // deviation of the sample, by n - 1
};

// Of one or more `values`. Local.
Spread SpreadOf(std::vector<double> values);

// Collective. For 5 and 8 channels: regularisation in size 1e-5 and 1e-7, standard deviation of initial weights 0 and
// 1e-6, --study-seeds seeds of parameters and sample order, on the same points; each nested, and not nested with the
// same work units. Prints a line per run and a table.
absl::Status RunStudy(const OdeNetSettings& settings, training::Run& run, const Problem& problem);

}  // namespace plait::odenet_training

#endif  // PLAIT_TOOLS_ODENET_TRAINING_STUDY_H_
