#include "mgrit/examples/report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "mgrit/examples/solver_flags.h"

namespace plait::mgrit::examples {
namespace {

std::string RelaxationName(int cf_sweeps) {
  std::string name = "F";
  for (int sweep = 0; sweep < cf_sweeps; ++sweep) name += "CF";
  return name;
}

std::string CycleName(const Options& options) {
  const char* const plain = options.cycle == Cycle::kV   ? "V-cycles"
                            : options.cycle == Cycle::kW ? "W-cycles"
                                                         : "F-cycles";
  if (!options.fmg) return plain;
  if (options.fmg_iterations < 0) return "full multigrid";
  return absl::StrCat("full multigrid for ", options.fmg_iterations, " iterations, then ", plain);
}

absl::Status WriteNorms(const std::string& file, absl::Span<const double> norms) {
  PLAIT_RETURN_IF_ERROR(base::ProbeWritableFile(file));
  std::ofstream stream(file);
  stream << "iteration,residual_norm\n";
  for (std::size_t k = 0; k < norms.size(); ++k) {
    stream << k << "," << (std::isnan(norms[k]) ? "" : absl::StrFormat("%.16e", norms[k])) << "\n";
  }
  stream.close();
  return stream.fail() ? absl::DataLossError(absl::StrCat("cannot write ", file)) : absl::OkStatus();
}

}  // namespace

double Larger(double largest, double error) {
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
}

void PrintSettings(const Options& options, std::int64_t steps) {
  std::printf("levels %d:", options.max_levels);
  for (int level = 0; level < options.max_levels; ++level) {
    std::printf(" %lld%s", static_cast<long long>(steps), level + 1 < options.max_levels ? "," : " steps");
    steps /= AtLevel(options.cfactors, level);
  }
  std::printf("; %s-relaxation; %s%s\n", RelaxationName(options.cf_sweeps[0]).c_str(),
              CycleName(options).c_str(), options.skip_downcycle ? "; first down-cycle skipped" : "");
}

void PrintIteration(const Options& options, int iteration, double norm, double norm_before) {
  const bool skipped =
      iteration == 0 && options.skip_downcycle && options.residual_time != ResidualTime::kCycle;
  const bool first = skipped || std::isnan(norm_before);
  const std::string shown = skipped ? "not available" : absl::StrFormat("%.16e", norm);
  const std::string factor = first ? "not available" : absl::StrFormat("%.6e", norm / norm_before);
  std::printf("iter %d  |r| = %s  factor = %s\n", iteration, shown.c_str(), factor.c_str());
  std::fflush(stdout);
}

void PrintOutcome(const Options& options, const Solution& solution) {
  if (options.max_levels == 1) {
    std::printf("one level: the serial sweep\n");
  } else if (solution.diverged) {
    const char* const how = std::isfinite(solution.last_residual_norm()) ? "has grown" : "is not finite";
    std::printf("diverged after %d iterations: the residual %s\n", solution.iterations, how);
  } else if (solution.stagnated) {
    std::printf("stagnated after %d iterations: the residual no longer falls\n", solution.iterations);
  } else if (solution.converged) {
    std::printf("converged after %d iterations: |r| < %g%s\n", solution.iterations, options.tolerance,
                options.relative_tolerance ? " times the first" : "");
  } else {
    std::printf("stopped after %d iterations\n", solution.iterations);
  }
}

void Summarize(const comm::Communicator& world, const Solution& solution, LargestErrors errors) {
  double largest[3] = {errors.against_serial, errors.against_exact, solution.seconds};
  world.AllReduce(comm::BufferOf(absl::MakeSpan(largest)), comm::ReduceOp::kMax);
  std::vector<std::int64_t> steps = solution.work.steps;
  world.AllReduce(comm::BufferOf(absl::MakeSpan(steps)));
  if (world.rank() != 0) return;
  std::printf("largest error against the serial sweep %.3e", largest[0]);
  if (largest[1] >= 0) std::printf(", against the exact solution %.3e", largest[1]);
  std::printf("\nevaluations of Phi:");
  for (std::size_t level = 0; level < steps.size(); ++level) {
    std::printf("%s level %zu %lld", level > 0 ? "," : "", level, static_cast<long long>(steps[level]));
  }
  std::printf("\ntime %.6f s on %d rank%s\n", largest[2], world.size(), world.size() > 1 ? "s" : "");
}

absl::Status WriteHistory(const comm::Communicator& world, const Solution& solution) {
  const std::string file = HistoryFile();
  const bool writes = world.rank() == 0 && !file.empty();
  return world.Agree(writes ? WriteNorms(file, solution.residual_norms) : absl::OkStatus());
}

}  // namespace plait::mgrit::examples
