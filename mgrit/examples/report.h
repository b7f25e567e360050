// What the examples print. Rank 0 prints; the text does not depend on the number of ranks, but for the line
// of times.
#ifndef PLAIT_MGRIT_EXAMPLES_REPORT_H_
#define PLAIT_MGRIT_EXAMPLES_REPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "mgrit/solver.h"

namespace plait::mgrit::examples {

// The largest 2-norm of a state's error over all points.
struct LargestErrors {
  double against_serial = 0;
  double against_exact = -1;  // negative where no exact solution is known
};

// "levels 3: 64, 16, 4 steps; FCF-relaxation; V-cycles"
void PrintSettings(const Options& options, std::int64_t steps);
// "iter 3  |r| = 1.2345678901234567e-05  factor = 1.234600e-02"; "not available" for the norm of a skipped
// down-cycle and for a factor of the first norm.
void PrintIteration(const Options& options, int iteration, double norm, double norm_before);
// How the solve ended.
void PrintOutcome(const Options& options, const Solution& solution);

// Collective: the largest errors of all ranks, the evaluations of Phi, the time.
void Summarize(const comm::Communicator& world, const Solution& solution, LargestErrors errors);

// "iteration,residual_norm" and a line per iteration; an empty field where there is no norm. Local.
absl::Status WriteHistory(const std::string& file, const Solution& solution);

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_REPORT_H_
