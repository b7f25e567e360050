// The heat equation in one dimension, parallel in time, with spatial coarsening.
#include <numbers>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "comm/session.h"
#include "mgrit/examples/example.h"
#include "mgrit/examples/example_main.h"
#include "mgrit/examples/heat_problem.h"

ABSL_FLAG(int, nx, 33, "spatial points, both ends included; 2^k + 1 allows the most spatial coarsening");
ABSL_FLAG(bool, spatial_coarsening, true,
          "halve the spatial intervals from time level to time level while it can be done");
ABSL_FLAG(std::string, initial_guess, "0",
          "value at every point of t > 0 before the first iteration, or random");

namespace plait::mgrit::examples {
namespace {

base::ToolUsage Usage() {
  return {.name = "heat",
          .summary =
              "Solves u_t = u_xx + sin(x) (cos(t) - sin(t)) on [0, pi] x [0, 2 pi], whose solution is sin(x) "
              "cos(t), "
              "by central differences and backward Euler with multigrid in time, and prints the norm of the "
              "residual at the C-points of the finest level, iteration by iteration.",
          .examples = {"heat --nt=256 --nx=65 --levels=3 --cfactor=4",
                       "heat --nt=64 --nx=33 --nospatial-coarsening --cfactor=2 --initial-guess=random",
                       "heat --nt=256 --levels=3 --periodic --initial-guess=0.5",
                       "heat --nt=1024 --nospatial-coarsening --cfactor=16 --coarse-window=20",
                       "heat --nproc=4 --nt=1024 --levels=4 --cfactor=4 --fmg --skip-downcycle"},
          .groups = {{"Equation", {"nx", "spatial_coarsening", "initial_guess"}},
                     GridFlags(),
                     SolverFlags(),
                     RankFlags(),
                     OutputFlags()}};
}

absl::StatusOr<HeatProblem::Parameters> ParametersFromFlags() {
  HeatProblem::Parameters parameters = {.nx = absl::GetFlag(FLAGS_nx),
                                        .spatial_coarsening = absl::GetFlag(FLAGS_spatial_coarsening)};
  if (parameters.nx < 3) {
    return absl::InvalidArgumentError(absl::StrCat("--nx=", parameters.nx, ": at least 3 points are needed"));
  }
  const std::string guess = absl::GetFlag(FLAGS_initial_guess);
  parameters.random_guess = guess == "random";
  if (!parameters.random_guess && !absl::SimpleAtod(guess, &parameters.initial_guess)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--initial-guess=", guess, ": expected a number or random"));
  }
  return parameters;
}

std::string Title(const HeatProblem& problem, const HeatProblem::Parameters& parameters,
                  const TimeGrid& time) {
  std::string title =
      absl::StrFormat("heat equation on [0, pi] x [0, 2 pi]: %d steps of backward Euler, %d points in space",
                      time.steps, parameters.nx);
  if (!parameters.spatial_coarsening) return title + ", no spatial coarsening";
  absl::StrAppend(&title, "; spatial points by level:");
  const int levels = OptionsFromFlags().value_or(Options{}).max_levels;
  for (int level = 0; level < levels; ++level) absl::StrAppend(&title, " ", problem.PointsOnLevel(level));
  return title;
}

absl::Status Run(comm::Session& session) {
  PLAIT_ASSIGN_OR_RETURN(const HeatProblem::Parameters parameters, ParametersFromFlags());
  HeatProblem problem(parameters);
  PLAIT_ASSIGN_OR_RETURN(const TimeGrid time, TimeGridFromFlags(2 * std::numbers::pi));
  Example<std::vector<double>> example = {
      .problem = &problem, .time = time, .exact = [&](double t) { return problem.Exact(t); }};
  example.title = Title(problem, parameters, example.time);
  return SolveAndReport(session.world(), example);
}

}  // namespace
}  // namespace plait::mgrit::examples

int main(int argc, char** argv) {
  return plait::mgrit::examples::RunExample(argc, argv, plait::mgrit::examples::Usage(),
                                            plait::mgrit::examples::Run);
}
