// One step of a network (a layer, a step of a sequence), as called by LayerParallel.
//
// For your own blocks, models::Block (models/block_model.h) is enough; this interface is for steps with their own
// kernels and hand-written adjoint, such as the GRU's (models/gru/layer_parallel).
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STEP_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STEP_H_

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mgrit/problem.h"
#include "models/block_model.h"

namespace plait::mgrit {

class TensorStep {
 public:
  using TensorAt = std::function<const at::Tensor&(std::int64_t point)>;
  struct Task {
    StepInterval interval;
    const at::Tensor* u;
    at::Tensor* out;
  };

  // What one recorded forward solve keeps for its adjoint solves. Several exist while several forward passes wait for
  // their backward.
  class Tape {
   public:
    virtual ~Tape() = default;
    // No adjoint will follow: drops graphs and inputs. Buffers may be kept for the next solve of this shape.
    virtual void Clear() = 0;
  };

  virtual ~TensorStep() = default;

  // The leaves besides u_0 that gradients are computed for: first the shared ones, the same list on every rank, then
  // those of this rank's steps only.
  virtual std::vector<at::Tensor> Parameters() = 0;
  // How many of Parameters() are shared: their gradients are summed over all steps and ranks.
  virtual std::int64_t SharedParameters() const = 0;
  // This rank owns the steps [first, last) of level 0, and will be called for these and for the coarse steps whose last
  // (Forward) or first (Adjoint) fine step is one of them. Called before any step.
  virtual void SetOwnSteps(std::int64_t first, std::int64_t last) = 0;

  // Number of evaluations of the network's step in one call of Forward for this interval, and of its adjoint in one
  // call of Adjoint; a coarse step may make several.
  virtual std::int64_t Evaluations(const StepInterval& /*interval*/) const { return 1; }
  // Whether EndForward recomputes the steps to C-points for the adjoint; otherwise Adjoint does so when needed.
  virtual bool LinearisesAhead() const { return false; }

  virtual std::unique_ptr<Tape> NewTape() const = 0;
  // Tensors of the batch that the steps of the next solve read besides their state. c10::Error by default.
  virtual void SetConditioning(const std::vector<at::Tensor>& conditioning) {
    TORCH_CHECK(conditioning.empty(), "LayerParallel: these steps take no conditioning");
  }
  // A forward solve begins. An adjoint may follow if `tape` is not null. `context` is that of all steps; dt, level,
  // step and final follow from each interval.
  virtual void Begin(Tape* tape, const models::BlockContext& context) = 0;
  // A forward solve with a tape has ended with the states u. `steps` are this rank's steps of level 0; those to
  // C-points have not been taken from these states yet.
  virtual void EndForward(absl::Span<const StepInterval> /*steps*/, const TensorAt& /*u*/) {}
  // An adjoint solve begins, at the states of the forward solve that had `tape`.
  virtual void BeginAdjoint(Tape& tape) = 0;

  // out = Phi(u): writes into `out`, or replaces `out` by a contiguous tensor that shares no memory with u.
  // If interval.final, `u` is the final state of its point, and what the adjoint needs may be kept.
  virtual void Forward(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) = 0;
  // A batch of independent steps; called if PrefersMany. Results equal those of Forward to rounding, and bitwise for
  // steps that are kept for the adjoint.
  virtual void ForwardMany(absl::Span<const Task> tasks) {
    for (const Task& task : tasks) Forward(task.interval, *task.u, *task.out);
  }
  virtual bool PrefersMany() const { return false; }
  // out = (dPhi/du)^T(u) lambda. `interval` is the forward step; within an adjoint solve, u is the same for all calls
  // with the same interval. If interval.final, `lambda` is the final adjoint of its point.
  virtual void Adjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                       at::Tensor& out) = 0;
  // Adds the gradients of `steps`, consecutive own steps of level 0, to `gradients`: first one per tensor of the
  // conditioning that requires a gradient, then one per entry of Parameters(); contiguous. Step i contributes
  // (dPhi_i/dparameters)^T(u_i) lambda_{i+1}. Depends on the steps and their data only, not on the rank.
  virtual void AddGradients(absl::Span<const StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                            absl::Span<at::Tensor> gradients) = 0;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STEP_H_
