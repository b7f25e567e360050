#include "mgrit/solver.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "mgrit/convergence.h"
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

Solver::Solver(AnyProblem& problem, const TimeGrid& time, const Options& options,
               const comm::Communicator& communicator)
    : Solver(problem, time, options, communicator,
             Partition::Even(time.steps, communicator.size(), Checked(options, time.steps))) {}

Solver::Solver(AnyProblem& problem, const TimeGrid& time, const Options& options,
               comm::Communicator communicator, Partition partition)
    : options_(Checked(options, time.steps)),
      communicator_(std::move(communicator)),
      hierarchy_(problem, options, Grid(time, options, std::move(partition), communicator_.rank()),
                 communicator_),
      problem_(problem) {
  const int positions = hierarchy_.grid().partition().positions();
  const std::string needed = options.periodic ? problem.WhyNotPeriodic() : "";
  PLAIT_CHECK(needed.empty()) << "not periodic: " << needed;
  PLAIT_CHECK(positions == communicator_.size())
      << "a partition over " << positions << " ranks for a communicator of " << communicator_.size();
}

Solver::~Solver() = default;

void Solver::set_max_iterations(int iterations) {
  PLAIT_CHECK(iterations >= 1) << "at least 1 iteration is needed, got " << iterations;
  options_.max_iterations = iterations;
}

Solution Solver::Solve() { return Cycles(0, options_.max_iterations, options_.keep_previous_states); }

Solution Solver::Continue() {
  if (iterations_ == 0) return Solve();
  return Cycles(iterations_, iterations_ + 1, /*keeps_states=*/true);
}

Solution Solver::Cycles(int first, int last, bool keeps_states) {
  Solution solution;
  hierarchy_.levels() == 1 ? Sweep(/*checks_end=*/false, solution)
                           : Cycles(first, last, keeps_states, solution);
  return solution;
}

void Solver::Cycles(int first, int last, bool keeps_states, Solution& solution) {
  const Stopwatch watch(solution.seconds);
  hierarchy_.ClearWork();
  const bool kept = hierarchy_.Initialize(keeps_states);
  if (first == 0) norms_.clear();
  skips_downcycle_ = options_.skip_downcycle && !kept;
  solving_ = true;
  bool stops = false;
  for (iterations_ = first; !stops && iterations_ < last;) {
    progress_ = ProgressOf(options_, norms_);
    hierarchy_.SetProgress(iterations_, progress_);
    solution.residual_norms.push_back(Iterate(iterations_));
    ++iterations_;
    ++solution.iterations;
    if (std::isfinite(solution.last_residual_norm())) norms_.push_back(solution.last_residual_norm());
    Judge(solution);
    stops = solution.converged || solution.diverged || solution.stagnated;
    const bool interrupted = Report(solution);
    solution.interrupted = interrupted && !stops;
    stops = stops || interrupted;
  }
  solving_ = false;
  hierarchy_.SetProgress(iterations_, 1);
  FinalRelaxation();
  hierarchy_.FinishMessages();
  solution.work = hierarchy_.work();
}

Solution Solver::SolveSerially() {
  PLAIT_CHECK(!options_.periodic) << "a serial sweep does not solve a periodic problem";
  Solution solution;
  Sweep(/*checks_end=*/true, solution);
  return solution;
}

void Solver::Sweep(bool checks_end, Solution& solution) {
  const Stopwatch watch(solution.seconds);
  hierarchy_.ClearWork();
  hierarchy_.Initialize(/*keep_states=*/false);
  hierarchy_.SetProgress(0, 1);
  hierarchy_.SerialSweep();
  hierarchy_.FinishMessages();
  solution.iterations = 1;
  solution.residual_norms = {0.0};
  solution.diverged = checks_end && !EndIsFinite();
  solution.converged = !solution.diverged;
  if (solution.diverged) solution.residual_norms = {kNoResidual};
  Report(solution);
  solution.work = hierarchy_.work();
}

// Of the last state, on the rank that owns it; the same on all ranks.
bool Solver::EndIsFinite() {
  const State* end = hierarchy_.state(hierarchy_.grid().level(0).steps);
  std::int64_t fails[] = {end == nullptr || problem_.IsFinite(*end) ? 0 : 1};
  communicator_.AllReduce(comm::BufferOf(absl::MakeSpan(fails)), comm::ReduceOp::kMax);
  return fails[0] == 0;
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

// Every entry is non-zero on at most one rank, so the all-reduce is exact.
absl::Span<const double> Solver::GlobalSquares(std::int64_t slots) {
  norms_squared_.assign(static_cast<std::size_t>(slots), 0.0);
  problem_.TakeNorms(absl::MakeSpan(norms_squared_));
  communicator_.AllReduce(comm::BufferOf(absl::MakeSpan(norms_squared_)));
  return norms_squared_;
}

// Summed in the order of the points, on every rank.
double Solver::GlobalNorm() {
  const absl::Span<const double> squares = GlobalSquares(hierarchy_.grid().level(0).c_intervals());
  if (!residual_norm_) return NormOverTime(options_.time_norm, squares);
  std::vector<double> norms;
  for (const double square : squares) norms.push_back(std::sqrt(square));
  return residual_norm_(norms);
}

absl::Span<const double> Solver::NormsTaken(const Solution& solution) const {
  if (options_.residual_time == ResidualTime::kNever) return {};
  absl::Span<const double> norms = solution.residual_norms;
  const bool skipped = skips_downcycle_ && options_.residual_time == ResidualTime::kRestriction;
  if (skipped && !norms.empty()) norms.remove_prefix(1);
  return norms;
}

void Solver::Judge(Solution& solution) const {
  const absl::Span<const double> norms = NormsTaken(solution);
  if (norms.empty()) return;
  const Verdict verdict = mgrit::Judge(options_, norms);
  solution.converged = verdict == Verdict::kConverged && (progress_ >= 1 || !problem_.IsInexact());
  solution.diverged = verdict == Verdict::kDiverged;
  solution.stagnated = verdict == Verdict::kStagnated;
}

bool Solver::Report(const Solution& solution) {
  const int iteration = solving_ ? iterations_ - 1 : 0;
  if (observer_) observer_(iteration, solution);
  if (!monitor_) return false;
  const Progress progress = {iteration, solution.last_residual_norm(), *this};
  std::int64_t stops[] = {monitor_(progress) ? 0 : 1};
  communicator_.AllReduce(comm::BufferOf(absl::MakeSpan(stops)), comm::ReduceOp::kMax);
  return stops[0] != 0;
}

void Solver::FinalRelaxation() {
  if (options_.final_relaxation == FinalRelaxation::kNone) return;
  const GridLevel& fine = hierarchy_.grid().level(0);
  if (options_.storage == Storage::kCPoints) {
    hierarchy_.RelaxFrom(fine.c_intervals());  // the points after the last C-point, for the final state
  } else {
    const bool all = options_.final_relaxation == FinalRelaxation::kAllPoints;
    hierarchy_.RelaxFrom(all ? 0 : (fine.steps - 1) / fine.cfactor);
  }
}

std::vector<double> Solver::EstimateStepErrors(int order) {
  const Grid& grid = hierarchy_.grid();
  PLAIT_CHECK(grid.levels() > 1 && !problem_.CoarsensSpace() && !problem_.HasEquation())
      << "errors of steps are estimated on at least 2 levels, from steps (no HasEquation), without spatial "
         "coarsening";
  const GridLevel& fine = grid.level(0);
  hierarchy_.CoarseErrors();
  const absl::Span<const double> squares = GlobalSquares(fine.c_intervals());
  hierarchy_.FinishMessages();
  const auto power = [&](const StepInterval& step) { return std::pow(step.dt(), order + 1); };
  std::vector<double> errors;
  for (std::int64_t k = 0; k < fine.c_intervals(); ++k) {
    double powers = 0;
    for (std::int64_t i = k * fine.cfactor; i < (k + 1) * fine.cfactor; ++i)
      powers += power(grid.Interval(0, i));
    const double constant =
        std::sqrt(squares[static_cast<std::size_t>(k)]) / (power(grid.Interval(1, k)) - powers);
    // Steps after the last C-point belong to no coarse step: uses the constant of the last one.
    const std::int64_t stop = k + 1 < fine.c_intervals() ? (k + 1) * fine.cfactor : fine.steps;
    for (std::int64_t i = k * fine.cfactor; i < stop; ++i)
      errors.push_back(constant * power(grid.Interval(0, i)));
  }
  return errors;
}

const State& Solver::state(std::int64_t point) const {
  const State* u = hierarchy_.state(point);
  PLAIT_CHECK(u != nullptr) << "the state of point " << point << " is not stored on this rank";
  return *u;
}

void Solver::Visit(const std::function<void(std::int64_t, const State&)>& visitor) {
  hierarchy_.Visit(visitor, /*final=*/!solving_);
}

}  // namespace plait::mgrit
