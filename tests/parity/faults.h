// Fault injection: bugs that an engine or a training program could have, injected through public interfaces (changed
// units, or changed numbers between Backward and Step). The parity comparison must detect each.
//
//   FaultInjector faults(Fault::kStaleGradients, world);
//   auto dp = DataParallel::Create(mesh, faults.UnitsOf(units), options);
//   dp->Backward(loss / faults.NormalizerOf(...));
//   faults.SpoilGradients(*dp, step);
//   optimizer->Step({.clip_norm = faults.ClipNormOf(*dp, clip)});
//   faults.SpoilMasters(*dp, step);
#ifndef PLAIT_TESTS_PARITY_FAULTS_H_
#define PLAIT_TESTS_PARITY_FAULTS_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parity {

enum class Fault {
  kNone,
  kDroppedAllReduce,     // replicas keep their own gradients
  kNormCountedTwice,     // the squares of both of two replicas in the global norm
  kOwnNorm,              // each rank clips by the norm of its own shards
  kFilledPadding,        // what lies between parameters counts in the norm
  kWrongNormalizer,      // each rank its own mean, and the mean of these
  kStaleShard,           // one rank forgets one shard of one step
  kStaleGradients,       // one step takes the gradients of the step before
  kAddedGradients,       // one step adds to the gradients of the step before
  kShiftedShards,        // gradients lie one element too far to the right
  kExchangedReductions,  // the gradients of two units come in each other's place
  kUnreachedGradients,   // those of one unit never come
  kDecayEverywhere,      // weight decay on biases and norms, too
};
inline constexpr Fault kFaults[] = {
    Fault::kDroppedAllReduce,    Fault::kNormCountedTwice,   Fault::kOwnNorm,
    Fault::kFilledPadding,       Fault::kWrongNormalizer,    Fault::kStaleShard,
    Fault::kStaleGradients,      Fault::kAddedGradients,     Fault::kShiftedShards,
    Fault::kExchangedReductions, Fault::kUnreachedGradients, Fault::kDecayEverywhere};
std::string NameOf(Fault fault);
// Whether a mesh of `replicas` x `shards` ranks can have it.
bool CanHave(Fault fault, int replicas, int shards);

class FaultInjector {
 public:
  // `at_step`: where faults of a single step strike; not the first step.
  FaultInjector(Fault fault, int at_step, const comm::Communicator& world);

  // The units to pass to the engine.
  std::vector<models::ParameterUnit> UnitsOf(std::vector<models::ParameterUnit> units) const;
  // The divisor of the loss sum over a micro-batch's `samples`; `whole`: the right one.
  double NormalizerOf(std::size_t samples, int micro_batches, double whole) const;
  // After a step's last Backward.
  void SpoilGradients(const parallel::DataParallel& dp, int step);
  // The norm to clip to. Collective with kOwnNorm.
  double ClipNormOf(parallel::DataParallel& dp, double clip_norm) const;
  // Before and after ShardedOptimizer::Step. The second is collective with kStaleShard.
  void NoteMasters(const parallel::DataParallel& dp, int step);
  void SpoilMasters(parallel::DataParallel& dp, int step) const;

 private:
  Fault fault_;
  int at_step_;
  comm::Communicator world_;
  std::vector<at::Tensor> gradients_;  // by shard: of the step before
  at::Tensor master_;                  // before the step
};

}  // namespace plait::parity

#endif  // PLAIT_TESTS_PARITY_FAULTS_H_
