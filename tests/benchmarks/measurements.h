// Parses the lines that layer_parallel_step and odenet_step print (step_lines.h), and turns them into input of the
// model of scaling.
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
  double seconds = 0;    // per batch, median of the run
  double mean = 0;       // likewise; 0: not in the log
  double processor = 0;  // of the rank that took most; 0: not in the log
};

struct MeasuredCosts {
  std::string setting;
  std::int64_t steps = 0;
  mgrit::scaling::Costs costs;  // without those of messages
  double seconds = 0;           // per batch, mean: what the costs add up to
};

struct MeasuredBias {
  std::string setting;
  std::int64_t steps = 0;
  double bias = 0;  // |gradient - exact gradient| / |exact gradient|
};

// Of one network.
struct Measurements {
  std::string problem = {};
  double batch = 0;
  std::string data = {};                  // "real", "synthetic", or empty
  std::vector<MeasuredStep> serial = {};  // of the plain loop; setting "serial"
  std::vector<MeasuredStep> parallel = {};
  std::vector<MeasuredCosts> costs = {};  // of runs on one rank
  std::vector<MeasuredBias> biases = {};
  bool has_messages = false;
  double latency = 0;
  double byte = 0;
  double contention = 1;
  double hand_over = 0;  // on the most ranks
  // mgrit/scaling/work_trace.h; without such keys those of the GRU.
  bool linearises_ahead = false, shares_parameters = true, wants_input_gradient = false;
};

// By problem (`problem=`, or "gru"), in the order of their first lines. Other lines are ignored; of several runs with
// the same keys, each is kept. NOT_FOUND without the file, INVALID_ARGUMENT with file and line for a malformed number,
// or for a problem without a run on one rank.
absl::StatusOr<std::vector<Measurements>> ReadMeasurements(const std::string& path);

// Of the runs whose setting, ranks and steps are those of `like`: the quickest run's seconds, which other work on the
// machine disturbed least, and the median over the runs.
struct RunSeconds {
  double quickest = 0, median = 0;
  double processor = 0;  // of the quickest run
};
RunSeconds SecondsOf(const std::vector<MeasuredStep>& all, const MeasuredStep& like);

// `all` with only those one-rank costs and serial runs that have one of these numbers of steps.
Measurements Calibration(Measurements all, const std::vector<std::int64_t>& steps);

// Costs of one rank at `steps` steps with this setting, else with the first measured one: of the quickest run. If that
// number of steps was not measured, interpolated linearly from the fewest and the most: each cost's total is a fixed
// part and one per step. `measurements` must have costs, as those of ReadMeasurements do.
mgrit::scaling::Costs CostsFor(const Measurements& measurements, const std::string& setting,
                               std::int64_t steps);

// ShapeOf (setting.h) for this network.
mgrit::scaling::BatchShape ShapeFor(const Measurements& measurements, const Setting& setting,
                                    std::int64_t steps, int ranks);

// Seconds of a batch of the plain serial loop, quickest run: as measured, or on the line through the fewest and the
// most steps; if only one number of steps was measured, all but the head is proportional to the steps. 0: none was
// measured.
double SerialSeconds(const Measurements& measurements, std::int64_t steps);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_MEASUREMENTS_H_
