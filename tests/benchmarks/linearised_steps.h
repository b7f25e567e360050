// Which forward steps have their activations at hand, as models/gru/layer_parallel/gru_step.h keeps them: the
// final ones of level 0, and every step whose adjoint has been asked for.
#ifndef PLAIT_TESTS_BENCHMARKS_LINEARISED_STEPS_H_
#define PLAIT_TESTS_BENCHMARKS_LINEARISED_STEPS_H_

#include <cstdint>
#include <set>
#include <utility>

#include "models/gru/layer_parallel/gru_step.h"

namespace plait::benchmarks {

class LinearisedSteps {
 public:
  explicit LinearisedSteps(gru::CoarseAdjoint coarse_adjoint) : coarse_adjoint_(coarse_adjoint) {}

  void Clear() { steps_.clear(); }
  // `level` of a forward step that begins at `fine_start`. True if it was not there: it is, from now on.
  bool Add(int level, std::int64_t fine_start) {
    const bool fine = coarse_adjoint_ == gru::CoarseAdjoint::kFineGates;
    return steps_.insert({fine ? 0 : level, fine_start}).second;
  }

 private:
  gru::CoarseAdjoint coarse_adjoint_;
  std::set<std::pair<int, std::int64_t>> steps_;
};

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_LINEARISED_STEPS_H_
