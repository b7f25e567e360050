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

// Coarse forward steps use the block of their last fine step, coarse adjoint steps that of their first: this rank owns
// the block in either case.
class BlockStep final : public TensorStep {
 public:
  using Factory = std::function<std::shared_ptr<models::Block>(std::int64_t step)>;
  using TiedParameters = std::vector<std::pair<std::string, at::Tensor>>;

  // LayerParallelOptions::recomputes; may be empty.
  using Recomputes = std::function<bool(std::int64_t step)>;

  BlockStep(Factory make_block, TiedParameters tied, Recomputes recomputes);  // a block per step
  BlockStep(std::shared_ptr<models::Block> shared, Recomputes recomputes);    // one for all

  // After SetOwnSteps: INVALID_ARGUMENT if blocks of several own steps share a parameter that is not tied.
  const absl::Status& status() const { return status_; }
  // Collective, after SetOwnSteps: INVALID_ARGUMENT, on a rank that owns one of the steps, if steps of different ranks
  // share a parameter that is not tied. If some elements of a parameter of another rank equal those of an own one, the
  // factory is called for that step to compare the tensors themselves. Not detected: tensors whose sampled elements are
  // all equal, or on the meta device.
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
  // Uses models::StackableBlock if the blocks implement and prefer it; recorded calls are made one by one.
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

  // Step, size and some elements of a parameter: equal tensors have equal size and elements.
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
  // The results of a batch of calls; empty if they cannot be batched.
  std::vector<at::Tensor> CallMany(absl::Span<const models::BlockCall> calls) const;
  // Stores the results of the tasks; if `results` is empty, takes the steps one by one.
  void TakeTogether(absl::Span<const Task* const> tasks, const std::vector<at::Tensor>& results);
  at::Tensor Call(std::int64_t step, const StepInterval& interval, bool final, const at::Tensor& u) const;
  bool IsRecomputed(std::int64_t step) const { return recomputes_ && recomputes_(step); }
  // Whether the call of a step that is about to be made is its final one.
  bool TakeFinal(std::int64_t step);
  // The recorded step of the current tape; recorded now if missing, and kept unless the step is recomputed.
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
  Graphs* graphs_ = nullptr;              // the tape of the current solve; null: nothing is recorded
  models::BlockContext context_;          // of the current solve
  std::vector<at::Tensor> conditioning_;  // of the current solve; leaves if it has a tape
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_BLOCK_STEP_H_
