// The fastest way to propagate through a network, by number of steps and ranks (one core each): serial, or
// layer-parallel with levels, factors and iterations whose gradient bias is within a limit. Predicted by the model of
// scaling (mgrit/scaling).
#ifndef PLAIT_TESTS_BENCHMARKS_FASTEST_WAYS_H_
#define PLAIT_TESTS_BENCHMARKS_FASTEST_WAYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/plot/plot.h"
#include "tests/benchmarks/measurements.h"

namespace plait::benchmarks {

struct Way {
  std::string name;  // "serial", or "3x4 2+1": levels, factor, iterations forward and backward
  double seconds = 0, serial_seconds = 0;  // per batch
  double speedup() const { return serial_seconds / seconds; }
};

// Candidates are the settings whose bias was measured with `steps` steps and is at most `bias_limit`; of those that
// differ only in iterations, the one with fewest. Costs come from `calibration`, serial seconds from `all`.
absl::StatusOr<Way> FastestWay(const Measurements& all, const Measurements& calibration, std::int64_t steps,
                               int ranks, double bias_limit);

struct WaysToPrint {
  std::vector<std::int64_t> steps;
  int most_ranks = 1024;
  std::int64_t steps_per_rank = 8;  // of weak scaling
  double bias_limit = 0.1;
};

// Two Markdown tables: the fastest way for all steps and ranks, ranks not above steps; then weak scaling, for numbers of
// steps whose biases were measured. Speed-ups with the most steps are added to `strong`, seconds of weak scaling to `weak`,
// a series for the problem. Nothing where no biases were measured.
absl::Status PrintFastestWays(const Measurements& all, const Measurements& calibration,
                              const WaysToPrint& what, data::Plot& strong, data::Plot& weak);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_FASTEST_WAYS_H_
