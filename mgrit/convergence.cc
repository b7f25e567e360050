#include "mgrit/convergence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace plait::mgrit {
namespace {

bool Converged(const Options& options, double first, double norm) {
  if (!options.relative_tolerance) return norm < options.tolerance;
  return norm < options.tolerance * first || (first == 0 && options.tolerance > 0);
}

bool Diverged(const Options& options, double first, double norm) {
  return options.divergence_factor > 0 && first > 0 && norm > options.divergence_factor * first;
}

bool Stagnated(const Options& options, absl::Span<const double> norms) {
  const auto recent = static_cast<std::size_t>(options.stagnation_iterations);
  if (recent == 0 || norms.size() <= recent) return false;
  const auto split = norms.end() - static_cast<std::ptrdiff_t>(recent);
  return !(*std::min_element(split, norms.end()) <
           options.stagnation_factor * *std::min_element(norms.begin(), split));
}

}  // namespace

Verdict Judge(const Options& options, absl::Span<const double> norms) {
  const double first = norms.front();
  const double norm = norms.back();
  if (!std::isfinite(norm)) return Verdict::kDiverged;
  if (Converged(options, first, norm)) return Verdict::kConverged;
  if (Diverged(options, first, norm)) return Verdict::kDiverged;
  return Stagnated(options, norms) ? Verdict::kStagnated : Verdict::kGoOn;
}

// Returns 1 from seven eighths on (on a logarithmic scale), as XBraid: the last iterations use tight tolerances.
double ProgressOf(const Options& options, absl::Span<const double> norms) {
  if (options.tolerance == 0 || options.residual_time == ResidualTime::kNever) return 1;
  if (norms.empty()) return 0;
  const double first = norms.front();
  const double least = *std::min_element(norms.begin(), norms.end());
  const double tolerance = options.tolerance * (options.relative_tolerance ? first : 1.0);
  if (least <= tolerance) return 1;
  if (first <= 0 || first <= tolerance) return 1;
  const double progress = std::log(least / first) / std::log(tolerance / first);
  return progress >= 7.0 / 8 ? 1 : progress;
}

double NormOverTime(TimeNorm norm, absl::Span<const double> squares) {
  double sum = 0;
  double largest = 0;
  for (const double square : squares) {
    sum += norm == TimeNorm::kOne ? std::sqrt(square) : square;
    largest = std::isnan(square) || square > largest ? square : largest;
  }
  if (norm == TimeNorm::kOne) return sum;
  return std::sqrt(norm == TimeNorm::kMax ? largest : sum);
}

}  // namespace plait::mgrit
