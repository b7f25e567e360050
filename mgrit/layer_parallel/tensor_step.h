// One step of a network (a layer, an item of a sequence) as LayerParallel drives it.
//
// Users with a module of their own need only Block (mgrit/layer_parallel/block.h); this interface is for
// steps that bring fast kernels and a hand-written adjoint, such as the GRU's (models/gru/gru_step.h).
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STEP_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STEP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "mgrit/problem.h"

namespace plait::mgrit {

class TensorStep {
 public:
  using TensorAt = std::function<const at::Tensor&(std::int64_t point)>;
  struct Task {
    StepInterval interval;
    const at::Tensor* u;
    at::Tensor* out;
  };

  virtual ~TensorStep() = default;

  // The leaves that the gradient is taken of besides u_0. The same list on every rank if the parameters are
  // shared by all steps; else those of the own steps.
  virtual std::vector<at::Tensor> Parameters() = 0;
  virtual bool SharedParameters() const = 0;
  // This rank will be asked for the steps [first, last) of level 0, and for the coarse steps that end there
  // (Forward) or begin there (Adjoint). Called before any step.
  virtual void SetOwnSteps(std::int64_t first, std::int64_t last) = 0;
  // A forward solve begins; with `differentiable`, an adjoint solve may follow.
  virtual void Begin(bool differentiable) = 0;
  // An adjoint solve begins, at the states of the last forward solve.
  virtual void BeginAdjoint() {}

  // out = Phi(u): written into `out`, or `out` replaced by a tensor that shares no memory with u. If
  // interval.final, `u` is the final state of its point: what the adjoint needs may be kept.
  virtual void Forward(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) = 0;
  virtual void ForwardMany(absl::Span<const Task> tasks);
  virtual bool PrefersMany() const { return false; }
  // out = (dPhi/du)^T(u) lambda. `interval` is the forward step; all calls of one adjoint solve for the same
  // interval bring the same u. If interval.final, `lambda` is the final adjoint of its point.
  virtual void Adjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                       at::Tensor& out) = 0;
  // Adds the gradient of `steps`, consecutive own steps of level 0, to `gradients` (one per entry of
  // Parameters(), contiguous): step i contributes (dPhi_i/dparameters)^T(u_i) lambda_{i+1}. A function of the
  // steps and their data alone, whoever calls it.
  virtual void AddGradients(absl::Span<const StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                            absl::Span<at::Tensor> gradients) = 0;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_TENSOR_STEP_H_
