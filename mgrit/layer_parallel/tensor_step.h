// One step of a network (a layer, a step of a sequence) as LayerParallel drives it.
//
// Users with blocks of their own need only models::Block (models/block_model.h); this interface is for steps
// that bring fast kernels and a hand-written adjoint, such as the GRU's (models/gru/layer_parallel).
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

  // What one recorded forward solve keeps for its adjoint solves. Several are in use where several forward
  // passes wait for their backward.
  class Tape {
   public:
    virtual ~Tape() = default;
    // No adjoint will follow: drops graphs and inputs. Memory may stay for the next solve of this shape.
    virtual void Clear() = 0;
  };

  virtual ~TensorStep() = default;

  // The leaves that the gradient is taken of besides u_0: first the shared ones, the same list on every rank,
  // then those of the own steps alone.
  virtual std::vector<at::Tensor> Parameters() = 0;
  // How many of Parameters() are shared: their gradients are summed over all steps and ranks.
  virtual std::int64_t SharedParameters() const = 0;
  // This rank will be asked for the steps [first, last) of level 0, and for the coarse steps that end there
  // (Forward) or begin there (Adjoint). Called before any step.
  virtual void SetOwnSteps(std::int64_t first, std::int64_t last) = 0;

  // Evaluations of the network's step in a call of Forward for this interval, and of its adjoint in one of Adjoint: a
  // coarse step may make several.
  virtual std::int64_t Evaluations(const StepInterval& /*interval*/) const { return 1; }
  // Whether EndForward takes the steps to C-points again, for the adjoint; else the adjoint does that where it needs it.
  virtual bool LinearisesAhead() const { return false; }

  virtual std::unique_ptr<Tape> NewTape() const = 0;
  // Tensors of the batch that the steps of the solve that begins next read besides their state. Steps without any
  // refuse them.
  virtual void SetConditioning(const std::vector<at::Tensor>& conditioning) {
    TORCH_CHECK(conditioning.empty(), "LayerParallel: these steps take no conditioning");
  }
  // A forward solve begins. An adjoint may follow if it has a tape, else (null) none will. `context`: of all its steps;
  // the solver says dt, level, step and final.
  virtual void Begin(Tape* tape, const models::BlockContext& context) = 0;
  // A forward solve with a tape has ended at the states u. `steps` are the own steps of level 0; those to
  // C-points have not been taken from these states yet.
  virtual void EndForward(absl::Span<const StepInterval> /*steps*/, const TensorAt& /*u*/) {}
  // An adjoint solve begins, at the states of the forward solve that had `tape`.
  virtual void BeginAdjoint(Tape& tape) = 0;

  // out = Phi(u): written into `out`, or `out` replaced by a contiguous tensor that shares no memory with u.
  // If interval.final, `u` is the final state of its point: what the adjoint needs may be kept.
  virtual void Forward(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) = 0;
  // Independent steps together; called if PrefersMany. The results are those of Forward to the rounding of sums made in
  // another order; steps that are kept for the adjoint have Forward's bits.
  virtual void ForwardMany(absl::Span<const Task> tasks) {
    for (const Task& task : tasks) Forward(task.interval, *task.u, *task.out);
  }
  virtual bool PrefersMany() const { return false; }
  // out = (dPhi/du)^T(u) lambda. `interval` is the forward step; all calls of one adjoint solve for the same
  // interval bring the same u. If interval.final, `lambda` is the final adjoint of its point.
  virtual void Adjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                       at::Tensor& out) = 0;
  // Adds the gradient of `steps`, consecutive own steps of level 0, to `gradients` (one per entry of
  // Parameters(), behind one per tensor of the conditioning that requires a gradient; contiguous): step i contributes (dPhi_i/dparameters)^T(u_i) lambda_{i+1}. A function of the
  // steps and their data alone, whoever calls it.
  virtual void AddGradients(absl::Span<const StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                            absl::Span<at::Tensor> gradients) = 0;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STEP_H_
