#include "mgrit/examples/solver_flags.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/path.h"
#include "base/status_macros.h"

using Words = std::vector<std::string>;

ABSL_FLAG(std::int64_t, nt, 64, "time steps on the finest level");
ABSL_FLAG(double, grading, 1,
          "points t_i = stop (i / nt)^grading; above 1, steps are short at the beginning; 1: uniform");
ABSL_FLAG(int, levels, 2, "levels of the time grid; 1 is the serial sweep");
ABSL_FLAG(bool, periodic, false,
          "solve u(0) = u(stop) instead of from the initial condition, which is then a guess");
ABSL_FLAG(Words, cfactor, {"4"},
          "coarsening factor, or a comma list, finest level first (the last serves the rest)");
ABSL_FLAG(Words, nrelax, {"1"}, "CF-sweeps: 0 is F-, 1 FCF-relaxation, ...; one number or a list");
ABSL_FLAG(Words, c_weight, {"1"}, "weight of C-relaxation; one number or a list");
ABSL_FLAG(std::string, cycle, "V", "V, W or F");
ABSL_FLAG(std::int64_t, coarse_window, 0,
          "solve the coarsest level in parallel windows of this many steps (asynchronous truncated MGRIT); "
          "0: sequentially");
ABSL_FLAG(bool, fmg, false, "full multigrid: F-cycles with --fmg-v-cycles V-cycles a level");
ABSL_FLAG(int, fmg_iterations, -1, "number of iterations that are F-cycles; -1: all");
ABSL_FLAG(int, fmg_v_cycles, 1, "V-cycles per level of an F-cycle");
ABSL_FLAG(bool, skip_downcycle, false,
          "start on the coarsest level, from the initial guess; no residual then");
ABSL_FLAG(double, tol, 1e-9, "stop when the residual norm is below this; 0: never");
ABSL_FLAG(double, rtol, 0, "the same, times the first residual norm; replaces --tol if positive");
ABSL_FLAG(int, max_iter, 30, "most iterations, a skipped down-cycle included");
ABSL_FLAG(std::string, storage, "all", "states kept on the finest level: all, or cpoints");
ABSL_FLAG(int, c_point_levels, 1, "with --storage=cpoints, number of finest levels that store only C-points");
ABSL_FLAG(std::string, residual, "restriction",
          "residual taken in the cycle's restriction, or of the cycle's result: "
          "restriction, or cycle");
ABSL_FLAG(std::string, time_norm, "2",
          "norm over time of the residuals at the C-points, each in its 2-norm: 1, 2 or max");
ABSL_FLAG(double, divergence_factor, 0,
          "give up when the residual is above this many times the first; 0: when it is not finite");
ABSL_FLAG(
    int, stagnation, 0,
    "stop if the best residual of the last N iterations is not below 0.9 times the best before; 0: never");
ABSL_FLAG(std::string, history, "", "write the residual history to this file, as comma-separated values");

namespace plait::mgrit::examples {
namespace {

template <typename Enum>
absl::StatusOr<Enum> Choose(const char* flag, const std::string& word,
                            const std::vector<std::pair<const char*, Enum>>& of) {
  Words names;
  for (const auto& [name, value] : of) {
    if (word == name) return value;
    names.push_back(name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", word, ": expected ", absl::StrJoin(names, " or ")));
}

absl::StatusOr<std::vector<int>> Integers(const char* flag, const Words& words) {
  std::vector<int> numbers;
  for (const std::string& word : words) {
    int number = 0;
    if (!absl::SimpleAtoi(word, &number)) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, ": \"", word, "\" is no integer"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<std::vector<double>> Numbers(const char* flag, const Words& words) {
  std::vector<double> numbers;
  for (const std::string& word : words) {
    double number = 0;
    if (!absl::SimpleAtod(word, &number)) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, ": \"", word, "\" is not a number"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

// --tol has a default, which --rtol replaces.
void SetTolerance(Options& options) {
  const double relative = absl::GetFlag(FLAGS_rtol);
  options.relative_tolerance = relative > 0;
  options.tolerance = relative > 0 ? relative : absl::GetFlag(FLAGS_tol);
}

}  // namespace

base::FlagGroup GridFlags() { return {"Time grid", {"nt", "grading", "periodic", "levels", "cfactor"}}; }

base::FlagGroup SolverFlags() {
  return {"Solver",
          {"nrelax", "c_weight", "cycle", "coarse_window", "fmg", "fmg_iterations", "fmg_v_cycles",
           "skip_downcycle", "tol", "rtol", "max_iter", "storage", "c_point_levels", "residual", "time_norm",
           "divergence_factor", "stagnation"}};
}

base::FlagGroup OutputFlags() { return {"Output", {"history"}}; }

std::int64_t StepsFromFlags() { return absl::GetFlag(FLAGS_nt); }

bool PeriodicFromFlags() { return absl::GetFlag(FLAGS_periodic); }

absl::StatusOr<TimeGrid> TimeGridFromFlags(double stop) {
  const double grading = absl::GetFlag(FLAGS_grading);
  const std::int64_t steps = StepsFromFlags();
  if (!(grading > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("--grading=", grading, ": expected a number above 0"));
  }
  if (grading == 1 || steps < 1) return TimeGrid{.start = 0, .stop = stop, .steps = steps};
  std::vector<double> points;
  for (std::int64_t i = 0; i <= steps; ++i) {
    points.push_back(stop * std::pow(static_cast<double>(i) / static_cast<double>(steps), grading));
  }
  return TimeGrid::FromPoints(std::move(points));
}

std::string HistoryFile() { return base::FromUser(absl::GetFlag(FLAGS_history)); }

absl::StatusOr<Options> OptionsFromFlags() {
  Options options;
  options.max_levels = absl::GetFlag(FLAGS_levels);
  PLAIT_ASSIGN_OR_RETURN(options.cfactors, Integers("cfactor", absl::GetFlag(FLAGS_cfactor)));
  PLAIT_ASSIGN_OR_RETURN(options.cf_sweeps, Integers("nrelax", absl::GetFlag(FLAGS_nrelax)));
  PLAIT_ASSIGN_OR_RETURN(options.c_weights, Numbers("c-weight", absl::GetFlag(FLAGS_c_weight)));
  PLAIT_ASSIGN_OR_RETURN(options.cycle,
                         Choose<Cycle>("cycle", absl::GetFlag(FLAGS_cycle),
                                       {{"V", Cycle::kV}, {"W", Cycle::kW}, {"F", Cycle::kF}}));
  PLAIT_ASSIGN_OR_RETURN(options.storage,
                         Choose<Storage>("storage", absl::GetFlag(FLAGS_storage),
                                         {{"all", Storage::kAllPoints}, {"cpoints", Storage::kCPoints}}));
  PLAIT_ASSIGN_OR_RETURN(
      options.residual_time,
      Choose<ResidualTime>("residual", absl::GetFlag(FLAGS_residual),
                           {{"restriction", ResidualTime::kRestriction}, {"cycle", ResidualTime::kCycle}}));
  PLAIT_ASSIGN_OR_RETURN(
      options.time_norm,
      Choose<TimeNorm>("time-norm", absl::GetFlag(FLAGS_time_norm),
                       {{"1", TimeNorm::kOne}, {"2", TimeNorm::kTwo}, {"max", TimeNorm::kMax}}));
  options.coarse_window = absl::GetFlag(FLAGS_coarse_window);
  options.periodic = PeriodicFromFlags();
  options.c_point_levels = absl::GetFlag(FLAGS_c_point_levels);
  options.divergence_factor = absl::GetFlag(FLAGS_divergence_factor);
  options.stagnation_iterations = absl::GetFlag(FLAGS_stagnation);
  options.fmg = absl::GetFlag(FLAGS_fmg);
  options.fmg_iterations = absl::GetFlag(FLAGS_fmg_iterations);
  options.fmg_v_cycles = absl::GetFlag(FLAGS_fmg_v_cycles);
  options.skip_downcycle = absl::GetFlag(FLAGS_skip_downcycle);
  options.max_iterations = absl::GetFlag(FLAGS_max_iter);
  if (!(absl::GetFlag(FLAGS_rtol) >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rtol=", absl::GetFlag(FLAGS_rtol), ": expected 0 or more"));
  }
  SetTolerance(options);
  PLAIT_RETURN_IF_ERROR(Validate(options, StepsFromFlags()));
  return options;
}

}  // namespace plait::mgrit::examples
