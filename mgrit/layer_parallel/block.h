// A user's own step, differentiated by autograd.
//
//   struct Residual : mgrit::Block {
//     at::Tensor Forward(const at::Tensor& u, double dt) override { return u + dt *
//     at::tanh(linear->forward(u)); } std::vector<at::Tensor> Parameters() override { return
//     linear->parameters(); } torch::nn::Linear linear{8, 8};
//   };
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_BLOCK_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "mgrit/layer_parallel/tensor_step.h"

namespace plait::mgrit {

class Block {
 public:
  virtual ~Block() = default;
  // (batch, ...) -> the same shape. A coarse level calls it with a larger dt, so `u + dt f(u)` is the natural
  // form. The same arguments give the same result: randomness (dropout) is fixed for the time of a batch.
  virtual at::Tensor Forward(const at::Tensor& u, double dt) = 0;
  virtual std::vector<at::Tensor> Parameters() = 0;
};

// Blocks as a TensorStep. Coarse forward steps use the block of their last fine step, coarse adjoint steps
// that of their first: both belong to the rank that takes the step.
class BlockStep final : public TensorStep {
 public:
  using Factory = std::function<std::shared_ptr<Block>(std::int64_t step)>;

  explicit BlockStep(Factory make_block);             // a block per step
  explicit BlockStep(std::shared_ptr<Block> shared);  // one for all

  std::vector<at::Tensor> Parameters() override;
  bool SharedParameters() const override { return shared_ != nullptr; }
  void SetOwnSteps(std::int64_t first, std::int64_t last) override;
  void Begin(bool differentiable) override;
  void Forward(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) override;
  void Adjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
               at::Tensor& out) override;
  void AddGradients(absl::Span<const StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                    absl::Span<at::Tensor> gradients) override;

 private:
  // The recorded graph of a step: from the leaf `u` to `out`.
  struct Recorded {
    at::Tensor u;
    at::Tensor out;
  };

  Block& BlockOf(std::int64_t step) const;
  Recorded Record(std::int64_t step, double dt, const at::Tensor& u) const;
  const Recorded& RecordedAt(const StepInterval& interval, const at::Tensor& u);

  Factory make_block_;
  std::shared_ptr<Block> shared_;
  std::vector<std::shared_ptr<Block>> own_;
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  bool differentiable_ = false;
  std::vector<std::vector<Recorded>> recorded_;  // by level, then by own fine step at the left end
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_BLOCK_H_
