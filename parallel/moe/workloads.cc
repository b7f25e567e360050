#include "parallel/moe/workloads.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/seed.h"
#include "parallel/moe/placement.h"

namespace plait::moe {
namespace {

constexpr int kBurstPeriod = 8;
constexpr double kMostZipfExponent = 20;  // no weight underflows

std::vector<int> ShuffledExperts(const WorkloadOptions& options, const char* name, std::uint64_t index) {
  std::vector<int> order(options.experts);
  std::iota(order.begin(), order.end(), 0);
  base::RandomStream stream(base::DeriveSeed(options.seed, name, index));
  base::Shuffle(stream, absl::MakeSpan(order));
  return order;
}

bool IsBurst(std::int64_t step) { return step % kBurstPeriod == kBurstPeriod - 1; }

bool GoesInTurn(const WorkloadOptions& options, std::int64_t step) {
  return options.workload == Workload::kBalanced || options.workload == Workload::kRagged ||
         (options.workload == Workload::kBurst && !IsBurst(step));
}

// `hot` experts share hot_share equally, the others the rest; uniform if there are no others.
std::vector<double> HotWeights(const WorkloadOptions& options, absl::Span<const int> hot) {
  const auto cold = options.experts - static_cast<int>(hot.size());
  if (cold == 0) return std::vector<double>(options.experts, 1.0);
  std::vector<double> weights(options.experts, (1 - options.hot_share) / cold);
  for (const int expert : hot) weights[expert] = options.hot_share / static_cast<double>(hot.size());
  return weights;
}

std::vector<double> HotRankWeights(const WorkloadOptions& options) {
  const ExpertPlacement homes(options.ranks, options.experts);
  const int expert = ShuffledExperts(options, "moe hot rank", 0)[0];
  return HotWeights(options, homes.slots(homes.home_rank(expert)));
}

std::vector<double> ZipfWeights(const WorkloadOptions& options, std::int64_t rotation) {
  const std::vector<int> order = ShuffledExperts(options, "moe experts", 0);
  std::vector<double> weights(options.experts);
  for (std::int64_t i = 0; i < options.experts; ++i) {
    weights[order[(i + rotation) % options.experts]] =
        std::pow(static_cast<double>(i + 1), -options.zipf_exponent);
  }
  return weights;
}

std::vector<double> ZeroLoadWeights(const WorkloadOptions& options) {
  std::vector<double> weights(options.experts, 1.0);
  weights[0] = 0;
  if (options.ranks == 1) return weights;
  const ExpertPlacement homes(options.ranks, options.experts);
  for (const int expert : homes.slots(options.ranks - 1)) weights[expert] = 0;
  return weights;
}

// Unnormalized probabilities of each expert as a first choice.
std::vector<double> Weights(const WorkloadOptions& options, std::int64_t step) {
  switch (options.workload) {
    case Workload::kHotRank:
      return HotRankWeights(options);
    case Workload::kSpread:
      return ZipfWeights(options, 0);
    case Workload::kRotating:
      return ZipfWeights(options, step % options.experts);
    case Workload::kZeroLoad:
      return ZeroLoadWeights(options);
    default: {  // kHotSet, and kBurst in a burst
      const std::vector<int> order = ShuffledExperts(options, "moe experts", 0);
      return HotWeights(options, absl::MakeSpan(order).first(std::max(1, options.experts / 8)));
    }
  }
}

// Draws k experts without replacement; `weights` are restored afterwards.
void Draw(base::RandomStream& stream, std::vector<double>& weights, absl::Span<std::int64_t> ids) {
  std::vector<double> taken(ids.size());
  for (std::size_t j = 0; j < ids.size(); ++j) {
    double left = stream.Uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    int expert = -1, last = -1;
    for (int e = 0; e < static_cast<int>(weights.size()) && expert < 0; ++e) {
      if (weights[e] == 0) continue;
      last = e;
      left -= weights[e];
      if (left < 0) expert = e;
    }
    if (expert < 0) expert = last;  // by rounding of the sum
    ids[j] = expert;
    taken[j] = std::exchange(weights[expert], 0);
  }
  for (std::size_t j = 0; j < ids.size(); ++j) weights[ids[j]] = taken[j];
}

absl::Status Invalid(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("workload of a mixture of experts: ", what));
}

}  // namespace

const char* Name(Workload workload) {
  constexpr const char* kNames[] = {"balanced", "hot-set",   "hot-rank", "spread",
                                    "ragged",   "zero-load", "rotating", "burst"};
  return kNames[static_cast<int>(workload)];
}

absl::Status ParseWorkload(const std::string& text, Workload* workload) {
  std::string names;
  for (const Workload candidate : kWorkloads) {
    const std::string number = absl::StrCat("W", static_cast<int>(candidate));
    absl::StrAppend(&names, names.empty() ? "" : ", ", number, " ", Name(candidate));
    if (text != number && text != Name(candidate)) continue;
    *workload = candidate;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown workload '", text, "'; expected one of ", names));
}

absl::Status Validate(const WorkloadOptions& options) {
  if (options.experts < 1 || options.ranks < 1) {
    return Invalid(absl::StrCat(options.experts, " experts on ", options.ranks,
                                " ranks; expected at least one of each"));
  }
  if (!(options.hot_share > 0 && options.hot_share < 1)) {
    return Invalid(absl::StrCat("hot share ", options.hot_share, "; expected a number between 0 and 1"));
  }
  if (!(options.zipf_exponent >= 0 && options.zipf_exponent <= kMostZipfExponent)) {
    return Invalid(
        absl::StrCat("Zipf exponent ", options.zipf_exponent, "; expected 0 to ", kMostZipfExponent));
  }
  std::int64_t experts = options.experts;
  if (options.workload == Workload::kZeroLoad) {
    const std::vector<double> weights = ZeroLoadWeights(options);
    experts -= std::count(weights.begin(), weights.end(), 0.0);
  }
  if (options.k < 1 || options.k > experts) {
    return Invalid(
        absl::StrCat("k is ", options.k, "; expected 1 to ", experts, ", the experts that may have tokens"));
  }
  return absl::OkStatus();
}

std::int64_t FirstToken(const WorkloadOptions& options, std::int64_t tokens_per_rank, int rank) {
  const std::int64_t ranks = options.ranks;
  if (options.workload != Workload::kRagged || ranks == 1) return tokens_per_rank * rank;
  return tokens_per_rank * rank * (rank - 1) / (ranks - 1);
}

std::vector<std::int64_t> ExpertIds(const WorkloadOptions& options, std::int64_t step,
                                    std::int64_t first_token, std::int64_t tokens) {
  PLAIT_CHECK_OK(Validate(options));
  PLAIT_CHECK(step >= 0 && first_token >= 0 && tokens >= 0) << tokens << " tokens from " << first_token;
  std::vector<std::int64_t> ids(tokens * options.k);
  if (GoesInTurn(options, step)) {
    const std::vector<int> order = ShuffledExperts(options, "moe turns", static_cast<std::uint64_t>(step));
    for (std::int64_t i = 0; i < tokens * options.k; ++i) {
      ids[i] = order[(first_token * options.k + i) % options.experts];
    }
    return ids;
  }
  std::vector<double> weights = Weights(options, step);
  const std::uint64_t seed = base::DeriveSeed(options.seed, "moe tokens", static_cast<std::uint64_t>(step));
  for (std::int64_t token = 0; token < tokens; ++token) {
    base::RandomStream stream(
        base::DeriveSeed(seed, "token", static_cast<std::uint64_t>(first_token + token)));
    Draw(stream, weights, absl::MakeSpan(ids).subspan(token * options.k, options.k));
  }
  return ids;
}

}  // namespace plait::moe
