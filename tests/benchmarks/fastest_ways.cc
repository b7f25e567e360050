#include "tests/benchmarks/fastest_ways.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace plait::benchmarks {
namespace {

using mgrit::LayerParallelOptions;

int Iterations(const LayerParallelOptions& solver) {
  return solver.forward.max_iterations + solver.backward.max_iterations;
}

std::string NameOf(const LayerParallelOptions& solver) {
  return absl::StrFormat("%dx%d %d+%d", solver.forward.max_levels, solver.forward.cfactors[0],
                         solver.forward.max_iterations, solver.backward.max_iterations);
}

// By levels and factor. An iteration less is never slower.
absl::StatusOr<std::vector<Setting>> Candidates(const Measurements& all, std::int64_t steps,
                                                double bias_limit) {
  std::map<std::pair<int, int>, Setting> fewest;
  for (const MeasuredBias& measured : all.biases) {
    if (measured.steps != steps || !(measured.bias <= bias_limit)) continue;
    PLAIT_ASSIGN_OR_RETURN(const Setting setting, ParseSetting(measured.setting));
    const mgrit::Options& options = setting.solver.forward;
    const auto [found, added] = fewest.insert({{options.max_levels, options.cfactors[0]}, setting});
    if (!added && Iterations(setting.solver) < Iterations(found->second.solver)) found->second = setting;
  }
  std::vector<Setting> candidates;
  for (const auto& [grid, setting] : fewest) candidates.push_back(setting);
  return candidates;
}

bool HasBiases(const Measurements& all, std::int64_t steps) {
  return std::any_of(all.biases.begin(), all.biases.end(),
                     [&](const MeasuredBias& measured) { return measured.steps == steps; });
}

absl::Status PrintStrong(const Measurements& all, const Measurements& calibration, const WaysToPrint& what,
                         data::Plot& plot) {
  std::printf("| steps | serial s |");
  std::string rule = "|---|---|";
  for (int ranks = 2; ranks <= what.most_ranks; ranks *= 2) {
    std::printf(" %d |", ranks);
    rule += "---|";
  }
  std::printf("\n%s\n", rule.c_str());
  for (const std::int64_t steps : what.steps) {
    if (!HasBiases(all, steps)) continue;
    std::printf("| %lld | %.4f |", static_cast<long long>(steps), SerialSeconds(all, steps));
    data::Series series = {.name = all.problem, .x = {1}, .y = {1}};
    for (int ranks = 2; ranks <= what.most_ranks; ranks *= 2) {
      if (ranks > steps) {
        std::printf(" |");
        continue;
      }
      PLAIT_ASSIGN_OR_RETURN(const Way way, FastestWay(all, calibration, steps, ranks, what.bias_limit));
      std::printf(" %s %.2f |", way.name.c_str(), way.speedup());
      std::fflush(stdout);
      series.x.push_back(ranks);
      series.y.push_back(way.speedup());
    }
    std::printf("\n");
    if (steps == *std::max_element(what.steps.begin(), what.steps.end()))
      plot.series.push_back(std::move(series));
  }
  return absl::OkStatus();
}

absl::Status PrintWeak(const Measurements& all, const Measurements& calibration, const WaysToPrint& what,
                       data::Plot& plot) {
  std::printf(
      "\n%lld steps per rank:\n\n| ranks | steps | serial s | s | way | speed-up "
      "|\n|---|---|---|---|---|---|\n",
      static_cast<long long>(what.steps_per_rank));
  data::Series series = {.name = all.problem};
  for (int ranks = 1; ranks <= what.most_ranks; ranks *= 2) {
    const std::int64_t steps = ranks * what.steps_per_rank;
    if (!HasBiases(all, steps)) continue;
    PLAIT_ASSIGN_OR_RETURN(const Way way, FastestWay(all, calibration, steps, ranks, what.bias_limit));
    std::printf("| %d | %lld | %.4f | %.4f | %s | %.2f |\n", ranks, static_cast<long long>(steps),
                way.serial_seconds, way.seconds, way.name.c_str(), way.speedup());
    series.x.push_back(ranks);
    series.y.push_back(way.seconds);
  }
  plot.series.push_back(std::move(series));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Way> FastestWay(const Measurements& all, const Measurements& calibration, std::int64_t steps,
                               int ranks, double bias_limit) {
  const double serial = SerialSeconds(all, steps);
  Way fastest = {.name = "serial", .seconds = serial, .serial_seconds = serial};
  const mgrit::scaling::Machine machine = {.cores = ranks, .contention = calibration.contention};
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Setting> candidates, Candidates(all, steps, bias_limit));
  for (const Setting& candidate : candidates) {
    const mgrit::scaling::Costs costs = CostsFor(calibration, TextOf(candidate.solver), steps);
    const double seconds = PredictBatch(ShapeFor(calibration, candidate, steps, ranks), costs, machine);
    if (seconds < fastest.seconds)
      fastest = {.name = NameOf(candidate.solver), .seconds = seconds, .serial_seconds = serial};
  }
  return fastest;
}

absl::Status PrintFastestWays(const Measurements& all, const Measurements& calibration,
                              const WaysToPrint& what, data::Plot& strong, data::Plot& weak) {
  if (all.biases.empty()) return absl::OkStatus();
  std::printf(
      "\nFastest way (levels x factor, iterations forward + backward) with a gradient's bias of at most %g, "
      "and its "
      "speed-up over serial, a core for each rank:\n\n",
      what.bias_limit);
  PLAIT_RETURN_IF_ERROR(PrintStrong(all, calibration, what, strong));
  return PrintWeak(all, calibration, what, weak);
}

}  // namespace plait::benchmarks
