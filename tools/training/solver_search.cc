#include "tools/training/solver_search.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace plait::training {
namespace {

// Whether `candidate` has at most as many iterations and fine points as one that was not exact enough.
bool IsNoMoreExact(const SolverCandidate& candidate, const SolverCandidate& inexact) {
  const mgrit::Options &mine = candidate.options.forward, &other = inexact.options.forward;
  return mine.max_iterations <= other.max_iterations &&
         candidate.options.backward.max_iterations <= inexact.options.backward.max_iterations &&
         mine.max_levels >= other.max_levels && mine.cfactors >= other.cfactors &&
         candidate.hold == inexact.hold;
}

bool IsSame(const SolverCandidate& a, const SolverCandidate& b) {
  const mgrit::Options &mine = a.options.forward, &other = b.options.forward;
  return mine.max_iterations == other.max_iterations &&
         a.options.backward.max_iterations == b.options.backward.max_iterations &&
         mine.max_levels == other.max_levels && mine.cfactors == other.cfactors && a.hold == b.hold;
}

}  // namespace

std::string TextOf(const SolverCandidate& candidate) {
  const mgrit::Options& forward = candidate.options.forward;
  return absl::StrFormat("%d levels, factor %s, %d + %d iterations%s", forward.max_levels,
                         absl::StrJoin(forward.cfactors, ","), forward.max_iterations,
                         candidate.options.backward.max_iterations,
                         candidate.hold < 0 ? "" : absl::StrCat(", coarse hold ", candidate.hold));
}

std::vector<SolverCandidate> CandidatesLike(const mgrit::LayerParallelOptions& own,
                                            const std::vector<int>& holds) {
  constexpr std::pair<int, int> kIterations[] = {{1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}, {4, 4}};
  std::vector<SolverCandidate> candidates;
  std::vector<int> all_holds = {-1};
  all_holds.insert(all_holds.end(), holds.begin(), holds.end());
  for (const int levels : {2, 3}) {
    for (const int factor : {2, 4, 8, 16, 32}) {
      for (const auto& [forward, backward] : kIterations) {
        for (const int hold : all_holds) {
          SolverCandidate candidate = {.options = own, .hold = hold};
          for (mgrit::Options* direction : {&candidate.options.forward, &candidate.options.backward}) {
            direction->max_levels = levels;
            direction->cfactors = {factor};
          }
          candidate.options.forward.max_iterations = forward;
          candidate.options.backward.max_iterations = backward;
          candidates.push_back(std::move(candidate));
        }
      }
    }
  }
  return candidates;
}

void SolverSearch::Take(const SolverTrial& trial) {
  PLAIT_CHECK(under_way_) << "a trial behind the last";
  trials_.push_back(trial);
  ChooseNext();
}

void SolverSearch::Predict(std::vector<SolverCandidate> candidates) {
  candidates_ = std::move(candidates);
  ChooseNext();
}

int SolverSearch::Best() const {
  int best = -1;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    if (IsExactEnough(i) && (best < 0 || trials_[i].ratio < trials_[static_cast<std::size_t>(best)].ratio)) {
      best = static_cast<int>(i);
    }
  }
  return best;
}

double SolverSearch::serial_seconds() const {
  double sum = 0;
  for (const SolverTrial& trial : trials_) sum += trial.serial_seconds;
  return sum / static_cast<double>(trials_.size());
}

bool SolverSearch::MayWin(const SolverCandidate& candidate) const {
  for (std::size_t i = 0; i < tried_.size(); ++i) {
    if (IsSame(candidate, tried_[i])) return false;
    if (!IsExactEnough(i) && IsNoMoreExact(candidate, tried_[i])) return false;
  }
  const int best = Best();
  const double ratio = best < 0 ? 1 : std::min(1.0, trials_[static_cast<std::size_t>(best)].ratio);
  return candidate.predicted_seconds < ratio * serial_seconds();
}

void SolverSearch::ChooseNext() {
  under_way_ = false;
  if (trials_.size() == kTrials) return;
  const SolverCandidate* fastest = nullptr;
  for (const SolverCandidate& candidate : candidates_) {
    if (!MayWin(candidate)) continue;
    if (fastest == nullptr || candidate.predicted_seconds < fastest->predicted_seconds) fastest = &candidate;
  }
  if (fastest == nullptr) return;
  tried_.push_back(*fastest);
  under_way_ = true;
}

const SolverCandidate* SolverSearch::choice() const {
  const int best = Best();
  const bool wins = best >= 0 && trials_[static_cast<std::size_t>(best)].ratio < 1 - kLeastGain;
  return wins ? &tried_[static_cast<std::size_t>(best)] : nullptr;
}

std::string SolverSearch::Reason() const {
  const int best = Best();
  const std::string of = absl::StrFormat("of %d tried", trials_.size());
  if (best < 0) {
    return absl::StrFormat(
        "serial propagation, %.3g s a step: no gradient %s is within %.3g of the exact one", serial_seconds(),
        of, bias_limit_);
  }
  const SolverTrial& trial = trials_[static_cast<std::size_t>(best)];
  const std::string measured = absl::StrFormat(
      "%s: %.3g s a step, %.3g of serial propagation beside it, gradient bias %.3g (limit %.3g)",
      TextOf(tried_[static_cast<std::size_t>(best)]), trial.seconds, trial.ratio, trial.bias, bias_limit_);
  if (choice() == nullptr) {
    return absl::StrFormat("serial propagation, %.3g s a step; the fastest %s does not gain 5 %%: %s",
                           serial_seconds(), of, measured);
  }
  return absl::StrFormat("%s; the fastest %s", measured, of);
}

}  // namespace plait::training
