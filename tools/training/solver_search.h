// Which solver --lp-auto takes, from what trials have measured and what the model of scaling predicts.
//
//   SolverSearch search(own, /*bias_limit=*/0.1);
//   search.Take({.bias = 0.05, .seconds = 0.35, .serial_seconds = 0.30});   // of search.next()
//   search.Predict(candidates);                                             // with predicted seconds
//   while (const SolverCandidate* next = search.next()) search.Take(Try(*next));
//   search.decision();                                                      // here: serial
//
// The first trial is of the solver that the flags say. Each further one is of the candidate that is predicted to be
// fastest among those that may win: not tried, predicted faster than the best way so far, and not at most as exact as
// one whose gradient was too far from the exact one. Local; ranks that take the same figures decide alike.
#ifndef PLAIT_TOOLS_TRAINING_SOLVER_SEARCH_H_
#define PLAIT_TOOLS_TRAINING_SOLVER_SEARCH_H_

#include <string>
#include <vector>

#include "mgrit/layer_parallel/layer_parallel.h"

namespace plait::training {

struct SolverCandidate {
  mgrit::LayerParallelOptions options;
  // Of a recurrent network's coarse steps (gru::GruStepOptions::coarse_hold); -1: as it is.
  int hold = -1;
  double predicted_seconds = 0;  // of a step's passes
};

// "2 levels, factor 4, 2 + 1 iterations"
std::string TextOf(const SolverCandidate& candidate);

// Other levels, factors and iterations than `own` has, its relaxation and cycles; `holds` beside -1 for each. Some may not
// fit the steps.
std::vector<SolverCandidate> CandidatesLike(const mgrit::LayerParallelOptions& own,
                                            const std::vector<int>& holds);

struct SolverTrial {
  double bias = 0;            // |gradient - exact one| / |exact one|; NaN: the solve has diverged
  double seconds = 0;         // of a step's passes, by the candidate; medians
  double serial_seconds = 0;  // of the same ones serially, beside it
  // Median over the steps of the former by the latter. Ways are compared by it: from step to step a machine is faster or
  // slower for both.
  double ratio = 0;
};

class SolverSearch {
 public:
  static constexpr int kTrials = 5;
  // A solver whose gradients are inexact has to take this part of the time less than serial propagation: trials are short.
  static constexpr double kLeastGain = 0.05;

  // A candidate whose bias is above `bias_limit` is not taken.
  SolverSearch(const SolverCandidate& own, double bias_limit) : bias_limit_(bias_limit), tried_{own} {}

  // To be tried next; null: the search has ended. The own solver first.
  const SolverCandidate* next() const { return under_way_ ? &tried_.back() : nullptr; }
  void Take(const SolverTrial& trial);
  // Of what the next trials are chosen. Before: the search ends behind the first.
  void Predict(std::vector<SolverCandidate> candidates);

  // The fastest of the candidates that were exact enough; null: serial propagation, which is not slower by kLeastGain.
  const SolverCandidate* choice() const;
  // One line: what is chosen, and why.
  std::string Reason() const;
  // Mean over the trials.
  double serial_seconds() const;

 private:
  bool IsExactEnough(std::size_t trial) const { return trials_[trial].bias <= bias_limit_; }
  // The exact enough one with the least ratio; -1: none.
  int Best() const;
  bool MayWin(const SolverCandidate& candidate) const;
  void ChooseNext();

  double bias_limit_;
  std::vector<SolverCandidate> candidates_;
  std::vector<SolverCandidate> tried_;
  std::vector<SolverTrial> trials_;  // of tried_; one fewer while one is under way
  bool under_way_ = true;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SOLVER_SEARCH_H_
