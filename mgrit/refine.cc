#include "mgrit/refine.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace plait::mgrit {
namespace {

// Linear interpolation to a point of the refined grid: (1 - part) * old[left] + part * old[left + 1].
struct Source {
  std::int64_t left = 0;
  double part = 0;
};

// The initial guess of a grid, by interpolation of `states`, the states at old points.
struct Guess {
  std::vector<Source> sources;
  std::map<std::int64_t, std::unique_ptr<State>> states;
};

std::vector<Source> SourcesOf(absl::Span<const int> factors) {
  std::vector<Source> sources;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    for (int j = 0; j < factors[i]; ++j)
      sources.push_back({static_cast<std::int64_t>(i), double(j) / factors[i]});
  }
  sources.push_back({static_cast<std::int64_t>(factors.size()), 0.0});
  return sources;
}

// The old points, in order, that a rank needs for the guesses of its new C-points, the ghost among them.
std::vector<std::int64_t> NeededBy(const GridLevel& level, const std::vector<Source>& sources) {
  std::vector<std::int64_t> needed;
  for (std::int64_t point = level.first; point <= level.last && !level.empty(); ++point) {
    if (!level.is_c_point(point)) continue;
    const Source& source = sources[static_cast<std::size_t>(point)];
    if (needed.empty() || needed.back() < source.left) needed.push_back(source.left);
    if (source.part > 0) needed.push_back(source.left + 1);
  }
  return needed;
}

// Copies of the states of all own points, by point.
std::map<std::int64_t, std::unique_ptr<State>> OwnStates(AnyProblem& problem, Solver& solver) {
  std::map<std::int64_t, std::unique_ptr<State>> states;
  const auto keep = [&](std::int64_t point, const State& u) {
    auto& state = states[point] = problem.NewState(0);
    problem.Copy(u, *state);
  };
  solver.Visit(keep);
  return states;
}

// Collective. Returns the states of the old points that this rank needs, received from their owners.
std::map<std::int64_t, std::unique_ptr<State>> FetchStates(AnyProblem& problem, Solver& old, const Grid& fine,
                                                           const Options& options,
                                                           const std::vector<Source>& sources,
                                                           const comm::Communicator& communicator) {
  const auto own = OwnStates(problem, old);
  const auto bytes = static_cast<std::size_t>(problem.PackedBytes(*problem.NewState(0)));
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const Partition& owners = old.grid().partition();
  std::vector<std::int64_t> sends(ranks, 0), receives(ranks, 0);
  std::vector<std::byte> out;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Grid theirs(fine.time(), options, fine.partition(), static_cast<int>(rank));
    for (const std::int64_t point : NeededBy(theirs.level(0), sources)) {
      const auto state = own.find(point);
      if (state == own.end()) continue;
      out.resize(out.size() + bytes);
      problem.Pack(*state->second, absl::MakeSpan(out).last(bytes));
      sends[rank] += static_cast<std::int64_t>(bytes);
    }
  }
  // In order of the points is also by owner: ranks own ranges of points in rank order.
  const std::vector<std::int64_t> needed = NeededBy(fine.level(0), sources);
  for (const std::int64_t point : needed) {
    const int owner = owners.RankAt(owners.OwnerPosition(std::max<std::int64_t>(point - 1, 0)));
    receives[static_cast<std::size_t>(owner)] += static_cast<std::int64_t>(bytes);
  }
  std::vector<std::byte> in(needed.size() * bytes);
  communicator.AllToAllV(comm::ConstBufferOf(absl::MakeConstSpan(out)), sends,
                         comm::BufferOf(absl::MakeSpan(in)), receives);
  std::map<std::int64_t, std::unique_ptr<State>> states;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    auto& state = states[needed[i]] = problem.NewState(0);
    problem.Unpack(absl::MakeConstSpan(in).subspan(i * bytes, bytes), *state);
  }
  return states;
}

// NaN if one of them is.
double LargestOf(absl::Span<const double> errors) {
  double largest = 0;
  for (const double error : errors) largest = std::isnan(largest) || error <= largest ? largest : error;
  return largest;
}

int LeastFactor(const Refinement& refinement, double error) {
  if (!(error > refinement.tolerance)) return 1;
  return static_cast<int>(
      std::min(std::ceil(std::pow(error / refinement.tolerance, 1.0 / (refinement.order + 1))),
               static_cast<double>(refinement.max_factor)));
}

std::vector<int> FactorsOf(const Refinement& refinement, const Grid& grid, absl::Span<const double> errors) {
  std::vector<int> factors;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const int asked = refinement.factor
                          ? refinement.factor(grid.Interval(0, static_cast<std::int64_t>(i)), errors[i])
                          : LeastFactor(refinement, errors[i]);
    factors.push_back(std::clamp(asked, 1, refinement.max_factor));
  }
  return factors;
}

Options Fitting(Options options, std::int64_t steps) {
  options.max_levels = LevelCount(options, steps);
  return options;
}

absl::Status Check(const Options& options, const TimeGrid& time, const Refinement& refinement) {
  if (refinement.order < 1 || !(refinement.tolerance > 0) || refinement.max_factor < 2 ||
      refinement.max_refinements < 0 || refinement.max_steps < time.steps) {
    return absl::InvalidArgumentError(
        absl::StrFormat("refinement in time: expected order >= 1, tolerance > 0, max_factor >= 2, "
                        "max_refinements >= 0, max_steps >= "
                        "%d (the first grid); have %d, %g, %d, %d, %d",
                        time.steps, refinement.order, refinement.tolerance, refinement.max_factor,
                        refinement.max_refinements, refinement.max_steps));
  }
  if (options.periodic) {
    return absl::InvalidArgumentError(
        "refinement in time of a periodic problem: the factors would not divide the steps; set periodic to "
        "false");
  }
  // With one level, Validate checks everything but the number of levels.
  Options one_level = options;
  one_level.max_levels = 1;
  one_level.coarse_window = 0;
  if (absl::Status valid = Validate(one_level, time.steps); !valid.ok()) return valid;
  const Options fitting = Fitting(options, time.steps);
  if (absl::Status valid = Validate(fitting, time.steps); !valid.ok()) return valid;
  if (fitting.max_levels >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "refinement in time needs a coarse level for its estimates: at least 2 levels");
}

}  // namespace

TimeGrid Refined(const TimeGrid& grid, absl::Span<const int> factors) {
  std::vector<double> points;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double start = grid.At(static_cast<std::int64_t>(i)),
                 stop = grid.At(static_cast<std::int64_t>(i) + 1);
    for (int j = 0; j < factors[i]; ++j) points.push_back(start + j * (stop - start) / factors[i]);
  }
  points.push_back(grid.At(grid.steps));
  absl::StatusOr<TimeGrid> refined = TimeGrid::FromPoints(std::move(points));
  PLAIT_CHECK(refined.ok()) << "steps too short to be cut: " << refined.status().message();
  return *std::move(refined);
}

absl::StatusOr<RefinedSolution> SolveRefining(AnyProblem& problem, const TimeGrid& time,
                                              const Options& options, const Refinement& refinement,
                                              const comm::Communicator& communicator) {
  if (const absl::Status valid = Check(options, time, refinement); !valid.ok()) return valid;
  RefinedSolution result;
  result.solver = std::make_unique<Solver>(problem, time, Fitting(options, time.steps), communicator);
  for (int refinements = 0;; ++refinements) {
    RefinementStage stage = {.steps = result.solver->grid().time().steps, .solution = result.solver->Solve()};
    result.solver->set_initial_guess(nullptr);  // no longer needed
    const std::vector<double> errors = result.solver->EstimateStepErrors(refinement.order);
    stage.largest_error = LargestOf(errors);
    const bool failed = stage.solution.diverged || !std::isfinite(stage.largest_error);
    result.stages.push_back(std::move(stage));
    if (failed) return result;
    const std::vector<int> factors = FactorsOf(refinement, result.solver->grid(), errors);
    auto guess = std::make_shared<Guess>(Guess{.sources = SourcesOf(factors), .states = {}});
    const auto steps = static_cast<std::int64_t>(guess->sources.size()) - 1;
    result.accurate = steps == result.solver->grid().time().steps;
    if (result.accurate || refinements == refinement.max_refinements || steps > refinement.max_steps)
      return result;

    const TimeGrid finer = Refined(result.solver->grid().time(), factors);
    Options fitting = Fitting(options, finer.steps);
    fitting.skip_downcycle = false;  // it would discard the guess
    auto next = std::make_unique<Solver>(problem, finer, fitting, communicator);
    guess->states = FetchStates(problem, *result.solver, next->grid(), fitting, guess->sources, communicator);
    next->set_initial_guess([guess, &problem](std::int64_t point, State& u) {
      const Source& source = guess->sources[static_cast<std::size_t>(point)];
      problem.Copy(*guess->states.at(source.left), u);
      if (source.part > 0)
        problem.Combine(source.part, *guess->states.at(source.left + 1), 1 - source.part, u);
    });
    result.solver = std::move(next);
  }
}

}  // namespace plait::mgrit
