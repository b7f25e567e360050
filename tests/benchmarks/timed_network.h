// Times the parts of a network's batches: layer-parallel, and serially on one rank.
//
// A network says what it is made of; RunBatch and RunSerialBatch put the parts together. step_lines.h prints what they
// took, measurements.h reads it back.
#ifndef PLAIT_TESTS_BENCHMARKS_TIMED_NETWORK_H_
#define PLAIT_TESTS_BENCHMARKS_TIMED_NETWORK_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>

#include "comm/communicator.h"
#include "mgrit/layer_parallel/layer_parallel.h"

namespace plait::benchmarks {

// Seconds of one batch on this rank. Gradients with respect to the first and the last state are taken by hand, so that
// the parts can be told apart.
struct BatchSeconds {
  double forward = 0;  // through the steps: inputs, solve, broadcast of the last state
  double head = 0;     // what comes before and behind the steps, the loss, and their backward
  double backward =
      0;  // through the steps: adjoint solve, gradients of parameters and their sum over ranks; setting them to zero
  // Of these, the solves. What the forward pass records ahead for the adjoint is part of its solve.
  double forward_solve = 0;
  double backward_solve = 0;
  double work = 0;       // inside Phi, its adjoint and the gradients of parameters
  double messages = 0;   // this rank stood still in them: for a neighbour that is late, or for the data
  double processor = 0;  // processor time, with that of waiting that spins
  double total() const { return forward + head + backward; }
};

class TimedNetwork {
 public:
  explicit TimedNetwork(comm::Communicator communicator) : communicator_(std::move(communicator)) {}
  virtual ~TimedNetwork() = default;

  // Collective. Behind a barrier: gradients set to zero, forward, loss, backward.
  BatchSeconds RunBatch();
  // The same network by serial propagation on this rank alone: all its time is `head`. Local.
  BatchSeconds RunSerialBatch();
  // Of the last batch, on every rank.
  double last_loss() const { return last_loss_; }

  virtual mgrit::LayerParallel& solver() = 0;
  // For the lines of a log: "problem=peaks batch=64".
  virtual std::string Description() const = 0;
  virtual double StateBytes() const = 0;
  // Whether the gradient with respect to the input of the steps is needed.
  virtual bool WantsInputGradient() const = 0;
  const comm::Communicator& communicator() const { return communicator_; }

 private:
  virtual void ClearGradients() = 0;
  virtual at::Tensor Open() = 0;
  virtual at::Tensor Propagate(const at::Tensor& opened) = 0;  // collective, by solver()
  virtual at::Tensor Loss(const at::Tensor& propagated) = 0;
  virtual at::Tensor SerialLoss() = 0;

  double MessageSeconds() const;

  comm::Communicator communicator_;
  double last_loss_ = 0;
};

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_TIMED_NETWORK_H_
