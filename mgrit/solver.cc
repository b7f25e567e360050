#include "mgrit/solver.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "mgrit/stopwatch.h"

namespace plait::mgrit {
namespace {

constexpr double kNoResidual = std::numeric_limits<double>::quiet_NaN();

const Options& Checked(const Options& options, std::int64_t steps) {
  const absl::Status valid = Validate(options, steps);
  PLAIT_CHECK(valid.ok()) << valid.message();
  return options;
}

}  // namespace

double Solution::last_residual_norm() const {
  return residual_norms.empty() ? kNoResidual : residual_norms.back();
}

Solver::Solver(AnyProblem& problem, TimeGrid time, const Options& options,
               const comm::Communicator& communicator)
    : Solver(problem, time, options, communicator,
             Partition::Even(time.steps, communicator.size(), Checked(options, time.steps))) {}

Solver::Solver(AnyProblem& problem, TimeGrid time, const Options& options, comm::Communicator communicator,
               Partition partition)
    : options_(Checked(options, time.steps)),
      communicator_(std::move(communicator)),
      hierarchy_(problem, options, Grid(time, options, std::move(partition), communicator_.rank()),
                 communicator_),
      problem_(problem) {
  const int positions = hierarchy_.grid().partition().positions();
  PLAIT_CHECK(positions == communicator_.size())
      << "a partition over " << positions << " ranks for a communicator of " << communicator_.size();
}

Solver::~Solver() = default;

void Solver::set_max_iterations(int iterations) {
  PLAIT_CHECK(iterations >= 1) << "at least 1 iteration is needed, got " << iterations;
  options_.max_iterations = iterations;
}

Solution Solver::Solve() {
  Solution solution;
  const Stopwatch watch(solution.seconds);
  hierarchy_.ClearWork();
  const bool kept = hierarchy_.Initialize(options_.keep_previous_states);
  skips_downcycle_ = options_.skip_downcycle && !kept;
  if (hierarchy_.levels() == 1) {
    hierarchy_.FRelax(0);
    solution.iterations = 1;
    solution.residual_norms = {0.0};
    solution.converged = true;
    if (observer_) observer_(0, 0.0);
  }
  while (hierarchy_.levels() > 1 && !ShouldStop(solution)) {
    const double norm = Iterate(solution.iterations);
    solution.residual_norms.push_back(norm);
    if (observer_) observer_(solution.iterations, norm);
    ++solution.iterations;
  }
  FinalRelaxation();
  hierarchy_.FinishMessages();
  solution.work = hierarchy_.work();
  return solution;
}

double Solver::Iterate(int iteration) {
  const bool at_restriction = options_.residual_time == ResidualTime::kRestriction;
  if (iteration == 0 && skips_downcycle_) {
    RunFirstCycleFromCoarsest();
    if (at_restriction) return kNoResidual;
  } else {
    RunCycle(0, CycleOf(iteration));
  }
  if (options_.residual_time == ResidualTime::kNever) return kNoResidual;
  if (!at_restriction) hierarchy_.Residual();
  return GlobalNorm();
}

void Solver::RunCycle(int level, Cycle cycle) {
  const int coarse = level + 1;
  const bool wants_norm = level == 0 && options_.residual_time == ResidualTime::kRestriction;
  for (int sweep = 0; sweep < AtLevel(options_.cf_sweeps, level); ++sweep) hierarchy_.FcSweep(level);
  hierarchy_.Restrict(level, wants_norm);
  if (coarse + 1 < hierarchy_.levels()) {
    RunCycle(coarse, cycle);
    if (cycle == Cycle::kW) RunCycle(coarse, Cycle::kW);
    for (int v = 0; cycle == Cycle::kF && v < options_.fmg_v_cycles; ++v) RunCycle(coarse, Cycle::kV);
  }
  hierarchy_.Interpolate(coarse);
}

void Solver::RunFirstCycleFromCoarsest() {
  hierarchy_.RestrictGuess();
  const Cycle cycle = CycleOf(0);
  for (int level = hierarchy_.levels() - 1; level > 0; --level) {
    const bool inner = level + 1 < hierarchy_.levels();
    for (int v = 0; inner && cycle == Cycle::kF && v < options_.fmg_v_cycles; ++v) RunCycle(level, Cycle::kV);
    hierarchy_.Interpolate(level);
  }
}

Cycle Solver::CycleOf(int iteration) const {
  const bool fmg = options_.fmg && (options_.fmg_iterations < 0 || iteration < options_.fmg_iterations);
  return fmg ? Cycle::kF : options_.cycle;
}

// The squares are added in the order of the points, whoever owns them: every entry has one non-zero
// contribution, so the all-reduce is exact.
double Solver::GlobalNorm() {
  norms_squared_.assign(hierarchy_.grid().level(0).c_intervals(), 0.0);
  problem_.TakeNorms(absl::MakeSpan(norms_squared_));
  communicator_.AllReduce(comm::BufferOf(absl::MakeSpan(norms_squared_)));
  double sum = 0;
  for (double norm_squared : norms_squared_) sum += norm_squared;
  return std::sqrt(sum);
}

bool Solver::ShouldStop(Solution& solution) const {
  double first = kNoResidual;
  for (double norm : solution.residual_norms) {
    if (std::isnan(first)) first = norm;
  }
  const bool skipped = solution.iterations == 1 && skips_downcycle_;
  const bool has_norm = options_.residual_time != ResidualTime::kNever && solution.iterations > 0 &&
                        !(skipped && options_.residual_time == ResidualTime::kRestriction);
  if (has_norm) {
    const double norm = solution.residual_norms.back();
    solution.diverged = !std::isfinite(norm);
    const bool zero_from_the_start = options_.relative_tolerance && first == 0 && options_.tolerance > 0;
    solution.converged =
        zero_from_the_start || norm < options_.tolerance * (options_.relative_tolerance ? first : 1.0);
  }
  return solution.diverged || solution.converged || solution.iterations >= options_.max_iterations;
}

void Solver::FinalRelaxation() {
  if (options_.final_relaxation == FinalRelaxation::kNone || hierarchy_.levels() == 1) return;
  const GridLevel& fine = hierarchy_.grid().level(0);
  if (options_.storage == Storage::kCPoints) {
    hierarchy_.RelaxFrom(fine.c_intervals());  // what follows the last C-point, for the end of the solution
  } else {
    const bool all = options_.final_relaxation == FinalRelaxation::kAllPoints;
    hierarchy_.RelaxFrom(all ? 0 : (fine.steps - 1) / fine.cfactor);
  }
}

const State& Solver::state(std::int64_t point) const {
  const State* u = hierarchy_.state(point);
  PLAIT_CHECK(u != nullptr) << "the state of point " << point << " is not stored on this rank";
  return *u;
}

void Solver::Visit(const std::function<void(std::int64_t, const State&)>& visitor) {
  hierarchy_.Visit(visitor);
}

}  // namespace plait::mgrit
