// The four problems as labelled samples by index.
//
//   PLAIT_ASSIGN_OR_RETURN(const Problem problem, OpenProblem(settings, run.world));
//   const models::Batch batch = problem.train.make(indices);
#ifndef PLAIT_TOOLS_ODENET_TRAINING_PROBLEM_H_
#define PLAIT_TOOLS_ODENET_TRAINING_PROBLEM_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "models/block_model.h"
#include "tools/odenet_training/settings.h"

namespace plait::odenet_training {

struct Samples {
  std::int64_t count = 0;
  // In the compute type of the settings.
  std::function<models::Batch(absl::Span<const std::int64_t> indices)> make;
  std::function<absl::Status()> status;  // the first error of `make` on this rank
};

struct Problem {
  std::string description;           // "Data: ..."; says "synthetic" where the samples are made up
  std::vector<std::int64_t> sample;  // shape of a sample, as OdeNetOptions has it
  std::int64_t classes = 0;
  Samples train, validation;
  std::string labels_digest;             // of the training samples: tools/training/resume.h
  std::string validation_labels_digest;  // likewise
};

// Collective over `world`. Every rank opens the data. An error on one rank is an error on all, and begins with the
// flag.
absl::StatusOr<Problem> OpenProblem(const OdeNetSettings& settings, const comm::Communicator& world);

}  // namespace plait::odenet_training

#endif  // PLAIT_TOOLS_ODENET_TRAINING_PROBLEM_H_
