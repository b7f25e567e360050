// Which solver --lp-auto takes, from what trials have measured and what the model of scaling predicts.
//
//   SolverSearch search(own, /*bias_limit=*/0.1);
//   search.Take({.bias = 0.05, .seconds = 0.35, .serial_seconds = 0.30, .ratio = 0.35 / 0.30});  // of search.next()
//   search.Predict(candidates);                                             // with predicted seconds
//   while (const SolverCandidate* next = search.next()) search.Take(Try(*next));
//   search.choice();                                   // null: serial propagation, unless a later trial was faster
//
// The first trial runs the solver that the flags configure. Each further trial runs the untried candidate with the
// least predicted time, among those predicted to beat the best result so far; candidates no more accurate than one
// already over the bias limit are skipped. Local and deterministic: ranks that pass in the same measurements agree.
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

// Candidates with other levels, coarsening factors and iterations, but the relaxation and cycles of `own`; each with
// hold -1 and with every entry of `holds`. Some may not be valid for the number of steps (LayerParallel::CheckOptions).
std::vector<SolverCandidate> CandidatesLike(const mgrit::LayerParallelOptions& own,
                                            const std::vector<int>& holds);

struct SolverTrial {
  double bias = 0;            // |gradient - exact gradient| / |exact gradient|; NaN: the solve diverged
  double seconds = 0;         // forward and backward of a step with the candidate, median over steps
  double serial_seconds = 0;  // the same micro-batches by serial propagation, median over steps
  // Median over steps of seconds / serial_seconds. Candidates are compared by this ratio, in which fluctuations of the
  // machine's speed cancel.
  double ratio = 0;
};

class SolverSearch {
 public:
  static constexpr int kTrials = 5;
  // A solver must be faster than serial propagation by this fraction to be chosen: its gradients are inexact, and
  // trials are short.
  static constexpr double kLeastGain = 0.05;

  // Candidates whose bias exceeds `bias_limit` are never chosen.
  SolverSearch(const SolverCandidate& own, double bias_limit) : bias_limit_(bias_limit), tried_{own} {}

  // The candidate to try next, `own` first; null when the search has ended.
  const SolverCandidate* next() const { return under_way_ ? &tried_.back() : nullptr; }
  void Take(const SolverTrial& trial);
  // Sets the candidates for further trials. If it is never called, the search ends after the first trial.
  void Predict(std::vector<SolverCandidate> candidates);

  // The fastest tried candidate within the bias limit; null, for serial propagation, if none beats it by kLeastGain.
  const SolverCandidate* choice() const;
  // One line: what is chosen, and why.
  std::string Reason() const;
  // Mean over the trials so far.
  double serial_seconds() const;

 private:
  bool IsExactEnough(std::size_t trial) const { return trials_[trial].bias <= bias_limit_; }
  // Index of the trial within the bias limit that has the least ratio; -1: none.
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
