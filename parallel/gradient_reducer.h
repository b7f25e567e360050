// Data parallelism: the mean over all replicas of every gradient, formed while backward still runs.
//
//   parallel::BroadcastTensors(dp, parameters, /*root=*/0);             // the same initial state everywhere
//   parallel::GradientReducer reducer(dp, parameters, {});
//   for (...) {
//     Loss(model.Forward(x)).backward();      // gradients start to travel as soon as they are there
//     reducer.Finish();                       // .grad() of every parameter: the mean over the replicas
//     optimizer.Step();
//   }
//
// A gradient of at least `alone_bytes` is a bucket of its own and is reduced in its own memory, without a
// copy; smaller ones are packed into buckets of at most `bucket_bytes`. Buckets leave in one fixed order, the
// reverse of the parameters' (as backward makes them), so that ranks whose gradients become ready in
// different orders still make the same calls (Li et al., "PyTorch Distributed", VLDB 2020, section 3.2).
// Between them every gradient that becomes ready also moves on what is in flight: MPI has no thread of its
// own for that.
//
// Collective: all replicas have the same parameters in the same order, and the same number of synchronising
// backward passes. After Finish the gradients are the same bits on all replicas.
#ifndef PLAIT_PARALLEL_GRADIENT_REDUCER_H_
#define PLAIT_PARALLEL_GRADIENT_REDUCER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "comm/communicator.h"

namespace plait::parallel {

struct GradientReducerOptions {
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  std::int64_t alone_bytes = std::int64_t{64} << 10;
};

class GradientReducer {
 public:
  // `parameters`: leaves that require gradients, dense. The reducer hooks into autograd until it is
  // destroyed; one reducer per parameter at a time.
  GradientReducer(const comm::Communicator& replicas, std::vector<at::Tensor> parameters,
                  const GradientReducerOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Off: backward adds to .grad() of this rank alone, and Finish must not be called (gradient accumulation).
  // The sums travel with the next backward that synchronises. Local; the same on all replicas. On at first.
  void set_synchronizes(bool synchronizes);

  // Waits for all buckets. A parameter that backward did not reach counts as a gradient of zero (and has one
  // then, as it may have been reached elsewhere). `reduced` is called for each bucket whose gradients are
  // means, while others are still on their way, with the indices of its parameters: an optimizer that steps
  // there (FusedAdam::Apply) fills the wait.
  using OnReduced = std::function<void(absl::Span<const std::size_t> parameters)>;
  void Finish(const OnReduced& reduced = {});

  // Of each bucket, in the order in which they leave.
  std::vector<std::int64_t> bucket_bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_GRADIENT_REDUCER_H_
