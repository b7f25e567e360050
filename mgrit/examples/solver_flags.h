// The solver flags that the examples share.
#ifndef PLAIT_MGRIT_EXAMPLES_SOLVER_FLAGS_H_
#define PLAIT_MGRIT_EXAMPLES_SOLVER_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/flags.h"
#include "mgrit/grid.h"
#include "mgrit/options.h"

namespace plait::mgrit::examples {

base::FlagGroup GridFlags();
base::FlagGroup SolverFlags();
base::FlagGroup OutputFlags();

std::int64_t StepsFromFlags();  // --nt
bool PeriodicFromFlags();       // --periodic
// --nt steps on [0, stop], graded by --grading. INVALID_ARGUMENT names the flag. Local.
absl::StatusOr<TimeGrid> TimeGridFromFlags(double stop);
std::string HistoryFile();  // --history, as an absolute path; may be empty

// Options that are valid for --nt steps. INVALID_ARGUMENT names the flag, its value and what was expected. Local.
absl::StatusOr<Options> OptionsFromFlags();

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_SOLVER_FLAGS_H_
