// Van der Pol's oscillator, parallel in time, with a nonlinear solver inside the step.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "comm/session.h"
#include "mgrit/examples/example.h"
#include "mgrit/examples/example_main.h"
#include "mgrit/examples/van_der_pol_problem.h"

ABSL_FLAG(double, mu, 2, "damping");
ABSL_FLAG(double, tstop, 4, "end of the time interval, which begins at 0");
ABSL_FLAG(std::string, newton_start, "iterate",
          "where Newton's method starts: from the solver's current iterate, or the state before the step: "
          "iterate, or before");
ABSL_FLAG(double, newton_loose, 1e-8, "tolerance of Newton's method in the first iteration");
ABSL_FLAG(double, newton_tight, 1e-12, "tolerance near convergence; equal to --newton-loose: constant");

namespace plait::mgrit::examples {
namespace {

base::ToolUsage Usage() {
  return {.name = "van_der_pol",
          .summary =
              "Solves x' = y, y' = mu (1 - x^2) y - x from (2, 0) by backward Euler with multigrid in time. "
              "Newton's method in a step starts from the solver's iterate, with a tolerance that follows the "
              "residual of the solve.",
          .examples = {"van_der_pol --nt=256 --levels=3 --cfactor=4",
                       "van_der_pol --nt=256 --newton-start=before --newton-loose=1e-12"},
          .groups = {{"Equation", {"mu", "tstop", "newton_start", "newton_loose", "newton_tight"}},
                     GridFlags(),
                     SolverFlags(),
                     RankFlags(),
                     OutputFlags()}};
}

absl::Status Run(comm::Session& session) {
  const std::string start = absl::GetFlag(FLAGS_newton_start);
  if (start != "iterate" && start != "before") {
    return absl::InvalidArgumentError(absl::StrCat("--newton-start=", start, ": expected iterate or before"));
  }
  const double tight = absl::GetFlag(FLAGS_newton_tight);
  const double loose = absl::GetFlag(FLAGS_newton_loose);
  if (!(tight > 0 && loose >= tight)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--newton-loose=%g, --newton-tight=%g: expected 0 < tight <= loose", loose, tight));
  }
  VanDerPolProblem problem({.mu = absl::GetFlag(FLAGS_mu),
                            .starts_at_iterate = start == "iterate",
                            .loose = loose,
                            .tight = tight});
  PLAIT_ASSIGN_OR_RETURN(const TimeGrid time, TimeGridFromFlags(absl::GetFlag(FLAGS_tstop)));
  Example<std::array<double, 2>> example = {.problem = &problem, .time = time};
  example.title = absl::StrFormat("van der Pol's oscillator, mu = %g, on [0, %g]: %d steps of backward Euler",
                                  absl::GetFlag(FLAGS_mu), time.stop, time.steps);
  std::int64_t newton[1] = {0};
  example.after_solve = [&] { newton[0] = problem.newton_iterations(); };
  PLAIT_RETURN_IF_ERROR(SolveAndReport(session.world(), example));
  session.world().AllReduce(comm::BufferOf(absl::MakeSpan(newton)));
  if (session.world().rank() == 0) std::printf("Newton iterations %lld\n", static_cast<long long>(newton[0]));
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::mgrit::examples

int main(int argc, char** argv) {
  return plait::mgrit::examples::RunExample(argc, argv, plait::mgrit::examples::Usage(),
                                            plait::mgrit::examples::Run);
}
