// The gradients of all units on their way, in one order on every rank. Private to parallel/sharding.
//
//   reductions.Begin(reduces, last);
//   loss.backward();          // Complete and Advance behind gradients: starts what may leave, moves on the
//   rest reductions.Finish(axes);  // starts what autograd did not complete, and waits for all
//
// Units leave in one order, whatever order their gradients become complete in, so that ranks make the same
// calls in the same order; sums over replicas likewise, as shares arrive (Li et al., "PyTorch Distributed",
// VLDB 2020, section 3.2). In the first pass that is the reverse of the units'; then the order in which they
// became complete there on the first rank.
#ifndef PLAIT_PARALLEL_SHARDING_REDUCTIONS_H_
#define PLAIT_PARALLEL_SHARDING_REDUCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/sharding/unit.h"

namespace plait::parallel {

class Reductions {
 public:
  // `most_in_flight`: units that travel at a time, where whole gradients are memory that goes when they have
  // arrived; 0: each has arrived before autograd goes on.
  Reductions(std::vector<Unit*> units, std::size_t most_in_flight);

  void Begin(bool reduces, bool last);
  // Unit `unit` has its last gradient of this pass.
  void Complete(std::size_t unit) { completed_.push_back(static_cast<std::int64_t>(unit)); }
  void Advance();
  // Collective in a pass that reduces.
  void Finish(const DataParallelAxes& axes);

 private:
  Unit& At(std::size_t place) { return *units_[static_cast<std::size_t>(order_[place])]; }
  void LearnOrder(const DataParallelAxes& axes);
  void StartNext();
  // Moves on what has started; waits for the first `must_scatter` and `must_sum` units.
  void Move(std::size_t must_scatter, std::size_t must_sum);
  void MoveSums(std::size_t must_sum);

  std::vector<Unit*> units_;
  std::vector<std::int64_t> order_;      // indices, in order of leaving
  std::vector<std::int64_t> completed_;  // in this pass
  bool learned_ = false;
  std::size_t most_in_flight_;
  bool reduces_ = false, last_ = false;
  std::size_t started_ = 0, scattered_ = 0, summed_ = 0;  // places in order_, from the front
  std::vector<bool> arrived_;                             // scattered, perhaps before those in front
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_REDUCTIONS_H_
