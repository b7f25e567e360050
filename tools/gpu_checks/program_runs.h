// What the checks of programs share. Private to tools/gpu_checks.
#ifndef PLAIT_TOOLS_GPU_CHECKS_PROGRAM_RUNS_H_
#define PLAIT_TOOLS_GPU_CHECKS_PROGRAM_RUNS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/gpu_checks/check.h"

namespace plait::gpu_checks {

// In float64 both devices print the same six decimals of losses above 0.05, but for the last one.
inline constexpr double kTrainerTolerance = 2e-5;

bool Has(const Context& context, const std::string& program);
std::string PathOf(const Context& context, const std::string& program);

Result Skipped(absl::string_view why);
Result Missing(const Context& context, absl::string_view program);
// With the exit code and the last line of the output, where programs print their error, but for mpirun's notice behind it.
Result Failed(const ProgramRun& run);

// Why a command of so many ranks with a GPU each cannot be run; empty: it can.
std::string ObstacleToRanks(const Context& context, int ranks);
// What to put before the command of a rank. With fewer GPUs than ranks each rank gets a host name of its own: NCCL and Plait
// take the ranks for nodes with one GPU each, which talk over the loopback device.
std::vector<std::string> CommandOfRanks(const Context& context, int ranks);

// A short text with a vocabulary of its own, written into the scratch directory: the machine need not have one.
std::string TextFile(const Context& context);

// Every number behind "loss=" (train_loss=, too) or "Loss: "; infinite where it is no number.
std::vector<double> TrainerLosses(const std::string& output);
// Relative; infinite where a run has no losses or another number of them.
double LossError(const std::vector<double>& actual, const std::vector<double>& expected);

}  // namespace plait::gpu_checks

#endif  // PLAIT_TOOLS_GPU_CHECKS_PROGRAM_RUNS_H_
