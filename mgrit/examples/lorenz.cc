// Lorenz's system, parallel in time. It is chaotic: over long times even the serial sweep loses all digits.
#include <array>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "comm/session.h"
#include "mgrit/examples/example.h"
#include "mgrit/examples/example_main.h"
#include "mgrit/examples/lorenz_problem.h"

ABSL_FLAG(std::string, method, "rk4", "classical Runge-Kutta, or forward Euler: rk4, or euler");
ABSL_FLAG(double, tstop, 1, "end of the time interval, which begins at 0");
ABSL_FLAG(int, delta_rank, 0,
          "directions in which coarse steps are corrected to change as fine steps do, 3 at most; 0: none");
ABSL_FLAG(double, initial_guess, 1,
          "value of each component at every point of t > 0 before the first iteration");

namespace plait::mgrit::examples {
namespace {

base::ToolUsage Usage() {
  return {.name = "lorenz",
          .summary =
              "Solves Lorenz's system (sigma 10, rho 28, beta 8/3) from (1, 1, 1) with multigrid in time and "
              "prints the norm of the residual at the C-points of the finest level, iteration by iteration.",
          .examples = {"lorenz --nt=256 --levels=3 --cfactor=4",
                       "lorenz --method=euler --tstop=2 --nt=2048 --cfactor=8 --nrelax=0 --delta-rank=3",
                       "lorenz --method=euler --nt=1024 --cfactor=2",
                       "lorenz --nproc=4 --nt=1024 --levels=3 --cfactor=2 --fmg"},
          .groups = {{"Equation", {"method", "tstop", "initial_guess", "delta_rank"}},
                     GridFlags(),
                     SolverFlags(),
                     RankFlags(),
                     OutputFlags()}};
}

absl::Status Run(comm::Session& session) {
  const std::string method = absl::GetFlag(FLAGS_method);
  if (method != "rk4" && method != "euler") {
    return absl::InvalidArgumentError(absl::StrCat("--method=", method, ": expected rk4 or euler"));
  }
  const int delta_rank = absl::GetFlag(FLAGS_delta_rank);
  if (delta_rank < 0 || delta_rank > 3) {
    return absl::InvalidArgumentError(absl::StrCat("--delta-rank=", delta_rank, ": expected 0 to 3"));
  }
  const bool euler = method == "euler";
  LorenzProblem problem(
      {.method = euler ? LorenzProblem::Method::kForwardEuler : LorenzProblem::Method::kRungeKutta4,
       .initial_guess = absl::GetFlag(FLAGS_initial_guess)});
  PLAIT_ASSIGN_OR_RETURN(const TimeGrid time, TimeGridFromFlags(absl::GetFlag(FLAGS_tstop)));
  Example<std::array<double, 3>> example = {
      .problem = &problem,
      .time = time,
      .delta_rank = delta_rank,
  };
  example.title =
      absl::StrFormat("Lorenz's system on [0, %g]: %d steps of %s", example.time.stop, example.time.steps,
                      euler ? "forward Euler" : "the classical Runge-Kutta method");
  return SolveAndReport(session.world(), example);
}

}  // namespace
}  // namespace plait::mgrit::examples

int main(int argc, char** argv) {
  return plait::mgrit::examples::RunExample(argc, argv, plait::mgrit::examples::Usage(),
                                            plait::mgrit::examples::Run);
}
