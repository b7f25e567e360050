// The output of the examples. Rank 0 prints; apart from the line of times, the text does not depend on the number of
// ranks.
#ifndef PLAIT_MGRIT_EXAMPLES_REPORT_H_
#define PLAIT_MGRIT_EXAMPLES_REPORT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "mgrit/solver.h"

namespace plait::mgrit::examples {

// The largest 2-norm of a state's error over all points.
struct LargestErrors {
  double against_serial = 0;
  double against_exact = -1;  // negative if no exact solution is known
};

// The larger of an error and the largest so far; infinity if it is NaN, which a maximum over ranks may lose.
double Larger(double largest, double error);

// "levels 3: 64, 16, 4 steps; FCF-relaxation; V-cycles"
void PrintSettings(const Options& options, std::int64_t steps);
// "iter 3  |r| = 1.2345678901234567e-05  factor = 1.234600e-02"; "not available" for the norm of a skipped down-cycle
// (unless ResidualTime::kCycle) and for the factor of the first norm.
void PrintIteration(const Options& options, int iteration, double norm, double norm_before);
// Prints how the solve ended.
void PrintOutcome(const Options& options, const Solution& solution);

// Collective. Prints the largest errors over all ranks, the evaluations of Phi per level, and the time of the slowest
// rank.
void Summarize(const comm::Communicator& world, const Solution& solution, LargestErrors errors);

// Collective. Writes --history, if given: a CSV file with the header "iteration,residual_norm" and a line per
// iteration; the norm is empty if there is none. DATA_LOSS if writing fails, or an error of base::ProbeWritableFile, on
// all ranks.
absl::Status WriteHistory(const comm::Communicator& world, const Solution& solution);

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_REPORT_H_
