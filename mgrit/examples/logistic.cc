// Logistic growth with an equation of its own (HasEquation, mgrit/any_problem.h): the solver computes residuals and
// coarse equations by evaluating the function of the implicit step, and uses Newton's method only in steps.
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "comm/session.h"
#include "mgrit/examples/example.h"
#include "mgrit/examples/example_main.h"

ABSL_FLAG(double, rate, 1, "of the growth");
ABSL_FLAG(double, tstop, 10, "end of the time interval, which begins at 0");
ABSL_FLAG(bool, own_equation, true,
          "the problem brings its equation; without it, the solver has steps alone");

namespace plait::mgrit::examples {
namespace {

constexpr double kStart = 0.01;
constexpr int kMostNewtonIterations = 60;

base::ToolUsage Usage() {
  return {.name = "logistic",
          .summary =
              "Solves u' = rate u (1 - u), u(0) = 0.01, by backward Euler with multigrid in time, whose "
              "step is the root of an equation that is cheap to evaluate.",
          .examples = {"logistic --nt=256 --levels=3 --cfactor=4", "logistic --nt=256 --noown-equation"},
          .groups = {{"Equation", {"rate", "tstop", "own_equation"}},
                     GridFlags(),
                     SolverFlags(),
                     RankFlags(),
                     OutputFlags()}};
}

// A(v, u) = v - dt rate v (1 - v) - u.
struct Logistic : Problem<double> {
  double rate = absl::GetFlag(FLAGS_rate);
  std::int64_t newton_iterations = 0, evaluations = 0;

  double Exact(double t) const { return 1 / (1 + (1 / kStart - 1) * std::exp(-rate * t)); }
  void Initialize(std::int64_t /*point*/, double /*t*/, double& u) override { u = kStart; }
  bool HasEquation() const override { return absl::GetFlag(FLAGS_own_equation); }
  void EvaluateEquation(const StepInterval& s, const double& u_start, const double& u_stop,
                        double& out) override {
    out = u_stop - s.dt() * rate * u_stop * (1 - u_stop) - u_start;
    ++evaluations;
  }
  void Step(const StepInterval& s, const double& u, double& out) override { Solve(s.dt() * rate, u, out); }
  void StepWithRightHandSide(const StepInterval& s, const double& u, const double& g, double& out) override {
    Solve(s.dt() * rate, u + g, out);
  }
  // The larger root of v - a v (1 - v) = b. The parabola is convex and increasing for v >= 1, so Newton's method
  // converges to the root from the right.
  void Solve(double a, double b, double& v) {
    v = 1;
    for (int k = 0; k < kMostNewtonIterations; ++k) {
      const double change = (v - a * v * (1 - v) - b) / (1 - a + 2 * a * v);
      v -= change;
      ++newton_iterations;
      if (!(std::fabs(change) > 1e-14)) return;
    }
  }
};

absl::Status Run(comm::Session& session) {
  const double rate = absl::GetFlag(FLAGS_rate);
  if (!(rate > 0)) return absl::InvalidArgumentError(absl::StrCat("--rate=", rate, ": expected more than 0"));
  PLAIT_ASSIGN_OR_RETURN(const TimeGrid time, TimeGridFromFlags(absl::GetFlag(FLAGS_tstop)));
  Logistic problem;
  std::int64_t work[2] = {0, 0};
  Example<double> example = {.problem = &problem, .time = time};
  if (!PeriodicFromFlags()) example.exact = [&](double t) { return problem.Exact(t); };
  example.title = absl::StrFormat("logistic growth at rate %g on [0, %g]: %d steps of backward Euler", rate,
                                  time.stop, time.steps);
  example.after_solve = [&] {
    work[0] = problem.newton_iterations;
    work[1] = problem.evaluations;
  };
  PLAIT_RETURN_IF_ERROR(SolveAndReport(session.world(), example));
  session.world().AllReduce(comm::BufferOf(absl::MakeSpan(work)));
  if (session.world().rank() != 0) return absl::OkStatus();
  std::printf("Newton iterations %lld, evaluations of the equation %lld\n", static_cast<long long>(work[0]),
              static_cast<long long>(work[1]));
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::mgrit::examples

int main(int argc, char** argv) {
  return plait::mgrit::examples::RunExample(argc, argv, plait::mgrit::examples::Usage(),
                                            plait::mgrit::examples::Run);
}
