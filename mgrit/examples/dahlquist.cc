// Dahlquist's equation u' = lambda u, parallel in time.
#include <array>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "comm/session.h"
#include "mgrit/examples/dahlquist_bdf2_problem.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/example.h"
#include "mgrit/examples/example_main.h"

ABSL_FLAG(double, lambda, -1, "the equation's factor");
ABSL_FLAG(std::string, method, "euler",
          "backward Euler, or the two-step backward differentiation formula on pairs of half steps: euler, "
          "or bdf2");
ABSL_FLAG(double, tstop, 5, "end of the time interval, which begins at 0");
ABSL_FLAG(double, u0, 1, "the initial condition");
ABSL_FLAG(double, initial_guess, 0, "value at every other point before the first iteration");

namespace plait::mgrit::examples {
namespace {

base::ToolUsage Usage() {
  return {
      .name = "dahlquist",
      .summary =
          "Solves u' = lambda u by backward Euler with multigrid in time and prints the norm of the residual "
          "at the C-points of the finest level, iteration by iteration.",
      .examples = {"dahlquist --nt=64 --levels=3 --cfactor=4 --nrelax=1",
                   "dahlquist --lambda=-2 --tstop=20 --nt=1024 --levels=4 --fmg --skip-downcycle",
                   "dahlquist --nproc=4 --nt=4096 --levels=3 --cfactor=8,4 --nrelax=0,1 --cycle=W"},
      .groups = {{"Equation", {"lambda", "method", "tstop", "u0", "initial_guess"}},
                 GridFlags(),
                 SolverFlags(),
                 RankFlags(),
                 OutputFlags()}};
}

template <typename S, typename ProblemType>
absl::Status Solve(comm::Session& session, ProblemType problem, const TimeGrid& time, const char* method) {
  Example<S> example = {.problem = &problem, .time = time};
  std::string start = "u(0) = u(stop)";
  if (!PeriodicFromFlags()) {
    start = absl::StrFormat("u(0) = %g", absl::GetFlag(FLAGS_u0));
    example.exact = [&](double t) { return problem.Exact(t); };
  }
  example.title = absl::StrFormat("u' = %g u, %s, on [0, %g]: %d steps of %s", absl::GetFlag(FLAGS_lambda),
                                  start, time.stop, time.steps, method);
  return SolveAndReport(session.world(), example);
}

absl::Status Run(comm::Session& session) {
  const double lambda = absl::GetFlag(FLAGS_lambda);
  const double u0 = absl::GetFlag(FLAGS_u0);
  const double guess = absl::GetFlag(FLAGS_initial_guess);
  const std::string method = absl::GetFlag(FLAGS_method);
  PLAIT_ASSIGN_OR_RETURN(const TimeGrid time, TimeGridFromFlags(absl::GetFlag(FLAGS_tstop)));
  if (method == "euler") {
    const DahlquistProblem problem({.lambda = lambda, .u0 = u0, .initial_guess = guess});
    return Solve<double>(session, problem, time, "backward Euler");
  }
  if (method != "bdf2" || time.points != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--method=", method, ": expected euler, or bdf2 with --grading=1"));
  }
  const double gap = 0.5 * (time.At(1) - time.At(0));
  const DahlquistBdf2Problem problem({.lambda = lambda, .u0 = u0, .initial_guess = guess, .gap = gap});
  return Solve<std::array<double, 2>>(session, problem, time, "BDF2, two at a time");
}

}  // namespace
}  // namespace plait::mgrit::examples

int main(int argc, char** argv) {
  return plait::mgrit::examples::RunExample(argc, argv, plait::mgrit::examples::Usage(),
                                            plait::mgrit::examples::Run);
}
