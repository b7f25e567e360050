// The gradients of all units on their way, in one order on every rank. Private to parallel/sharding.
//
//   reductions.Begin(reduces, last);
//   loss.backward();      // Advance behind each gradient: starts what is complete, moves on what has started
//   reductions.Finish();  // starts what autograd did not complete, and waits for all
//
// Units leave in the order given, whatever order their gradients become complete in, so that ranks make the
// same calls in the same order; sums over replicas likewise, as shares arrive (Li et al., "PyTorch
// Distributed", VLDB 2020, section 3.2).
#ifndef PLAIT_PARALLEL_SHARDING_REDUCTIONS_H_
#define PLAIT_PARALLEL_SHARDING_REDUCTIONS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "parallel/sharding/unit.h"

namespace plait::parallel {

class Reductions {
 public:
  // `bounded`: whole gradients are memory that goes when they have arrived, so only a few travel at a time.
  Reductions(std::vector<Unit*> units, bool bounded) : units_(std::move(units)), bounded_(bounded) {}

  void Begin(bool reduces, bool last);
  void Advance();
  void Finish();

 private:
  void StartNext();
  // Moves on what has started; waits for the first `must_scatter` and `must_sum` units.
  void Move(std::size_t must_scatter, std::size_t must_sum);
  void MoveSums(std::size_t must_sum);

  std::vector<Unit*> units_;  // in order of leaving
  bool bounded_;
  bool reduces_ = false, last_ = false;
  std::size_t started_ = 0, scattered_ = 0, summed_ = 0;  // of units_, from the front
  std::vector<bool> arrived_;                             // scattered, perhaps before those in front
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_REDUCTIONS_H_
