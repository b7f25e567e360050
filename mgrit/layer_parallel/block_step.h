// models::Block as a step of the solver, differentiated by autograd. Private to LayerParallel.
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_BLOCK_STEP_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_BLOCK_STEP_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "mgrit/layer_parallel/tensor_step.h"
#include "models/block_model.h"
#include "models/stackable_block.h"

namespace plait::mgrit {

// Coarse forward steps use the block of their last fine step, coarse adjoint steps that of their first: both
// belong to the rank that takes the step.
class BlockStep final : public TensorStep {
 public:
  using Factory = std::function<std::shared_ptr<models::Block>(std::int64_t step)>;
  using TiedParameters = std::vector<std::pair<std::string, at::Tensor>>;

  // LayerParallelOptions::recomputes; may be empty.
  using Recomputes = std::function<bool(std::int64_t step)>;

  BlockStep(Factory make_block, TiedParameters tied, Recomputes recomputes);  // a block per step
  BlockStep(std::shared_ptr<models::Block> shared, Recomputes recomputes);    // one for all

  // After SetOwnSteps: INVALID_ARGUMENT if blocks of several own steps have a parameter that is not tied.
  const absl::Status& status() const { return status_; }
  // Collective, after SetOwnSteps: the same for blocks of several ranks, on a rank that has one of them. Where
  // a parameter of another rank's step has the values of an own one, the factory is asked for that step's
  // block, to see whether it is the same tensor. Not seen: tensors whose elements are all equal, or on meta.
  absl::Status CheckOtherRanks(const comm::Communicator& communicator) const;

  std::vector<at::Tensor> Parameters() override { return parameters_; }
  std::int64_t SharedParameters() const override { return shared_parameters_; }
  void SetOwnSteps(std::int64_t first, std::int64_t last) override;
  bool LinearisesAhead() const override { return true; }
  std::unique_ptr<Tape> NewTape() const override;
  void SetConditioning(const std::vector<at::Tensor>& conditioning) override { conditioning_ = conditioning; }
  void Begin(Tape* tape, const models::BlockContext& context) override;
  void EndForward(absl::Span<const StepInterval> steps, const TensorAt& u) override;
  void BeginAdjoint(Tape& tape) override;
  void Forward(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) override;
  // By models::StackableBlock, where the blocks are and want that: calls that are recorded stay single.
  void ForwardMany(absl::Span<const Task> tasks) override;
  bool PrefersMany() const override;
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
  struct Graphs;
  // A block, each of its parameters once, and where those are in Parameters().
  struct OwnBlock {
    std::shared_ptr<models::Block> block;
    std::vector<at::Tensor> parameters;
    std::vector<std::size_t> slots;
  };

  // The values of an own parameter, in short: equal ones are equal in this.
  static std::vector<double> Digest(std::int64_t step, const at::Tensor& parameter);
  std::vector<double> OwnDigests() const;
  absl::Status CheckStep(std::int64_t step) const;
  void AddBlock(std::int64_t step, std::shared_ptr<models::Block> block);
  const OwnBlock& BlockOf(std::int64_t step) const;
  models::BlockContext ContextOf(const StepInterval& interval, bool final) const;
  // Whether a forward call is the one that autograd records.
  bool Records(const StepInterval& interval) const {
    return graphs_ != nullptr && interval.final && interval.level == 0;
  }
  // The results of `calls` together; empty: they are made one by one.
  std::vector<at::Tensor> CallMany(absl::Span<const models::BlockCall> calls) const;
  // Takes the steps whose results are these; where there are none, one by one.
  void TakeTogether(absl::Span<const Task* const> tasks, const std::vector<at::Tensor>& results);
  at::Tensor Call(std::int64_t step, const StepInterval& interval, bool final, const at::Tensor& u) const;
  bool IsRecomputed(std::int64_t step) const { return recomputes_ && recomputes_(step); }
  // Whether the call of a step that is about to be made is its final one.
  bool TakeFinal(std::int64_t step);
  // Of the tape in use; recorded now if it is not there, and kept unless its step is recomputed.
  Recorded RecordedAt(const StepInterval& interval, const at::Tensor& u);

  Factory make_block_;
  Recomputes recomputes_;
  TiedParameters tied_;
  std::shared_ptr<models::Block> shared_;
  absl::Status status_;
  std::vector<at::Tensor> parameters_;
  std::int64_t shared_parameters_ = 0;
  std::vector<OwnBlock> blocks_;  // by own step; one if shared
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  Graphs* graphs_ = nullptr;              // the tape of the solve under way; null: nothing is recorded
  models::BlockContext context_;          // of the solve under way
  std::vector<at::Tensor> conditioning_;  // of it; leaves where it has a tape
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_BLOCK_STEP_H_
