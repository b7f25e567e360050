// The lines that layer_parallel_step and odenet_step print (step_lines.h), read back, and what the model of scaling says
// with them.
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

// By problem (`problem=`, or "gru"), in the order of their first lines. Other lines are passed over; of several runs with
// the same key figures, each is kept. NotFound where there is no file, InvalidArgument with
// file and line where a number is none, or where a problem has no run on one rank.
absl::StatusOr<std::vector<Measurements>> ReadMeasurements(const std::string& path);

// Of the runs whose setting, ranks and steps are those of `like`: the quickest run's seconds, which other work on the
// machine disturbed least, and the median over the runs.
struct RunSeconds {
  double quickest = 0, median = 0;
  double processor = 0;  // of the quickest run
};
RunSeconds SecondsOf(const std::vector<MeasuredStep>& all, const MeasuredStep& like);

// Only what was measured on one rank with these numbers of steps.
Measurements Calibration(Measurements all, const std::vector<std::int64_t>& steps);

// Costs of one rank at `steps` steps with this setting, else with the first one: of the quickest run. Where it was not
// measured with so many steps, from the fewest and the most: each cost's total is then a fixed part and one for each step.
// Never empty: ReadMeasurements has seen to that.
mgrit::scaling::Costs CostsFor(const Measurements& measurements, const std::string& setting,
                               std::int64_t steps);

// ShapeOf (setting.h) for this network.
mgrit::scaling::BatchShape ShapeFor(const Measurements& measurements, const Setting& setting,
                                    std::int64_t steps, int ranks);

// Of a batch of the plain loop, quickest run: measured with so many steps, or on the line through the fewest and the most; where it was
// measured with one number of steps, its time but for the head grows with them. 0: none was measured.
double SerialSeconds(const Measurements& measurements, std::int64_t steps);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_MEASUREMENTS_H_
