// The lines that layer_parallel_step prints, read back: "word key=value key=value ...".
#ifndef PLAIT_TESTS_BENCHMARKS_MEASUREMENTS_H_
#define PLAIT_TESTS_BENCHMARKS_MEASUREMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mgrit/scaling/scaling_model.h"
#include "tests/benchmarks/setting.h"

namespace plait::benchmarks {

struct MeasuredStep {
  std::string setting;
  int ranks = 1;
  std::int64_t steps = 0;
  double seconds = 0;  // per batch, median
};

struct MeasuredCosts {
  std::string setting;
  std::int64_t steps = 0;
  mgrit::scaling::Costs costs;  // without those of messages
};

struct Measurements {
  std::vector<MeasuredStep> serial;  // of the plain loop; setting "serial"
  std::vector<MeasuredStep> parallel;
  std::vector<MeasuredCosts> costs;  // of runs on one rank
  bool has_messages = false;
  double latency = 0;
  double byte = 0;
  double contention = 1;
  double hand_over = 0;  // on the most ranks
  double batch = 0, hidden = 0;
};

// Other lines are passed over; of several runs with the same key figures, each counts (the model takes their
// median). NotFound where there is no file, InvalidArgument with file and line where a number is none, or
// where a file has no run on one rank.
absl::StatusOr<Measurements> ReadMeasurements(const std::string& path);

// Costs of one rank at `steps` steps with this setting (medians over the runs), else of the run nearest to
// it: the same setting at other steps, or any. Never empty: ReadMeasurements has seen to that.
mgrit::scaling::Costs CostsFor(const Measurements& measurements, const std::string& setting,
                               std::int64_t steps);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_MEASUREMENTS_H_
