// Reduces the gradients of all units, in the same order on every rank. Private to parallel/sharding.
//
//   reductions.Begin(reduces, last);
//   loss.backward();      // gradient hooks call Complete and Advance: starts what is ready, polls the rest
//   reductions.Finish();  // starts what autograd did not complete, and waits for all
//
// Units are reduced in a fixed order, whatever the order in which their gradients become complete, so that all ranks
// make the same calls in the same order; likewise the sums over replicas, as shards arrive (Li et al., "PyTorch
// Distributed", VLDB 2020, section 3.2). At first it is a given order; after the first pass that reduces, the order in
// which they became complete on rank 0 of every axis.
#ifndef PLAIT_PARALLEL_SHARDING_REDUCTIONS_H_
#define PLAIT_PARALLEL_SHARDING_REDUCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/sharding/unit.h"

namespace plait::parallel {

class Reductions {
 public:
  // `order`: indices of `units`, in which they are expected to become complete: gradients of a unit are held until those
  // before it have been reduced. `axes`: the axes that shard or replicate units. `most_in_flight`: limits the reduce-scatters in flight, because
  // unsharded gradients are released only when their shard has arrived; 0: each is waited for before autograd
  // continues.
  Reductions(std::vector<Unit*> units, std::vector<std::int64_t> order, std::vector<comm::Communicator> axes,
             std::size_t most_in_flight);

  void Begin(bool reduces, bool last);
  // Unit `unit` has all gradients of this micro-batch.
  void Complete(std::size_t unit) { completed_.push_back(static_cast<std::int64_t>(unit)); }
  void Advance();
  // Collective in a micro-batch that reduces.
  void Finish();

 private:
  Unit& At(std::size_t place) { return *units_[static_cast<std::size_t>(order_[place])]; }
  void LearnOrder();
  void StartNext();
  // Polls what has started, but on CUDA; waits for the first `must_scatter` and `must_sum` units.
  void Move(std::size_t must_scatter, std::size_t must_sum);
  void MoveSums(std::size_t must_sum);

  std::vector<Unit*> units_;
  std::vector<comm::Communicator> axes_;
  std::vector<std::int64_t> order_;      // indices, in order of reduction
  std::vector<std::int64_t> completed_;  // in this micro-batch
  bool learned_ = false;
  std::size_t most_in_flight_;
  bool on_cuda_ = false;
  bool reduces_ = false, last_ = false;
  std::size_t started_ = 0, scattered_ = 0, summed_ = 0;  // places in order_, from the front
  std::vector<bool> arrived_;                             // scattered, perhaps before those in front
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_REDUCTIONS_H_
