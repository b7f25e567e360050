// An equation whose solution has a layer, on an adaptively refined time grid.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "comm/session.h"
#include "mgrit/examples/example_main.h"
#include "mgrit/examples/layer_problem.h"
#include "mgrit/examples/report.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/examples/solver_flags.h"
#include "mgrit/refine.h"

ABSL_FLAG(double, width, 0.02, "of the layer in the middle");
ABSL_FLAG(double, error_tol, 1e-5, "largest estimated error of a step");
ABSL_FLAG(int, max_factor, 8, "parts that one refinement cuts a step into, at most");
ABSL_FLAG(int, max_refinements, 20, "grids after the first");

namespace plait::mgrit::examples {
namespace {

constexpr double kStop = 2;
constexpr std::int64_t kMostUniformSteps = 10000000;

base::ToolUsage Usage() {
  return {
      .name = "layer",
      .summary =
          "Solves u' = w' + w - u on [0, 2], whose solution w(t) = tanh((t - 1) / width) has a layer, by "
          "backward Euler with multigrid in time; cuts the steps whose estimated error is above "
          "--error-tol and goes on from there, grid after grid. Prints a line per grid; --history is that "
          "of the last grid.",
      .examples = {"layer --nt=32 --levels=2 --cfactor=2 --fmg",
                   "layer --nproc=4 --nt=32 --cfactor=2 --fmg --error-tol=1e-6"},
      .groups = {{"Equation", {"width"}},
                 {"Refinement", {"error_tol", "max_factor", "max_refinements"}},
                 GridFlags(),
                 SolverFlags(),
                 RankFlags(),
                 OutputFlags()}};
}

// Collective. The largest error over the points of all ranks.
double LargestError(const comm::Communicator& world, const LayerProblem& problem, Solver& solver) {
  double error[1] = {0};
  solver.Visit([&](std::int64_t point, const State& u) {
    error[0] = Larger(error[0], std::fabs(Value<double>(u) - problem.Exact(solver.grid().time().At(point))));
  });
  world.AllReduce(comm::BufferOf(absl::MakeSpan(error)), comm::ReduceOp::kMax);
  return error[0];
}

struct UniformGrid {
  std::int64_t steps = 0;
  bool suffices = false;  // false: its error is still too large
};

// The smallest grid of 2^k `steps` uniform steps whose error is at most `error`, up to kMostUniformSteps; one serial
// sweep each.
UniformGrid UniformGridFor(double error, LayerProblem& problem, std::int64_t steps) {
  for (;; steps *= 2) {
    const TimeGrid time = {0, kStop, steps};
    const auto states = SerialSweep<double>(problem, time, steps);
    double largest = 0;
    for (std::int64_t i = 0; i <= steps; ++i) {
      largest = Larger(largest, std::fabs(states[static_cast<std::size_t>(i)] - problem.Exact(time.At(i))));
    }
    if (largest <= error || steps > kMostUniformSteps / 2) return {steps, largest <= error};
  }
}

// On rank 0.
void Print(const RefinedSolution& refined, double error, LayerProblem& problem, std::int64_t first_steps) {
  for (const RefinementStage& stage : refined.stages) {
    std::printf("%8lld steps  %2d iterations  |r| = %.6e  largest estimated error of a step %.6e\n",
                static_cast<long long>(stage.steps), stage.solution.iterations,
                stage.solution.last_residual_norm(), stage.largest_error);
  }
  std::printf("%s: largest error %.6e\n", refined.accurate ? "no step asks to be cut" : "a limit was reached",
              error);
  if (!std::isfinite(error)) return;
  const UniformGrid uniform = UniformGridFor(error, problem, first_steps);
  std::printf("uniform steps for this error, doubled from %lld: %s%lld\n",
              static_cast<long long>(first_steps), uniform.suffices ? "" : "more than ",
              static_cast<long long>(uniform.steps));
}

absl::Status Run(comm::Session& session) {
  const double width = absl::GetFlag(FLAGS_width);
  if (!(width > 0))
    return absl::InvalidArgumentError(absl::StrCat("--width=", width, ": expected more than 0"));
  LayerProblem problem({.center = kStop / 2, .width = width});
  PLAIT_ASSIGN_OR_RETURN(const TimeGrid time, TimeGridFromFlags(kStop));
  PLAIT_ASSIGN_OR_RETURN(const Options options, OptionsFromFlags());
  const Refinement refinement = {.order = 1,
                                 .tolerance = absl::GetFlag(FLAGS_error_tol),
                                 .max_factor = absl::GetFlag(FLAGS_max_factor),
                                 .max_refinements = absl::GetFlag(FLAGS_max_refinements)};
  PLAIT_ASSIGN_OR_RETURN(const RefinedSolution refined,
                         SolveRefining(problem, time, options, refinement, session.world()));
  const double error = LargestError(session.world(), problem, *refined.solver);
  if (session.world().rank() == 0) Print(refined, error, problem, time.steps);
  return WriteHistory(session.world(), refined.stages.back().solution);
}

}  // namespace
}  // namespace plait::mgrit::examples

int main(int argc, char** argv) {
  return plait::mgrit::examples::RunExample(argc, argv, plait::mgrit::examples::Usage(),
                                            plait::mgrit::examples::Run);
}
