// A backward pass in two parts: the gradients of a stage's inputs first, those of its weights later.
//
//   SplitBackward split;
//   std::vector<at::Tensor> of_inputs = split.InputGradients({output}, {gradient_of_output}, {input});
//   ...
//   split.WeightGradients();        // adds to .grad() of the parameters, as backward() does
//
// The first part runs the graph along the paths from outputs to inputs, and keeps the gradients that arrive where a
// path meets a parameter (at a linear layer, a norm); the graph is cut there, and other tensors that autograd saved
// along the paths are released. The second part runs from these points to the parameters. No matrix product is
// computed twice; an operation that computes both gradients at once (a norm) runs twice. Qi et al., "Zero Bubble
// Pipeline Parallelism", ICLR 2024, section 2.
//
// Outputs that depend on no input belong to the second part. Parameters of activation-checkpointed blocks get their
// gradients in the first part, because their graph exists only during it. Local.
#ifndef PLAIT_PARALLEL_PIPELINE_SPLIT_BACKWARD_H_
#define PLAIT_PARALLEL_PIPELINE_SPLIT_BACKWARD_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace plait::parallel {

class SplitBackward {
 public:
  SplitBackward();
  ~SplitBackward();
  SplitBackward(SplitBackward&&) noexcept;
  SplitBackward& operator=(SplitBackward&&) noexcept;

  // Returns the gradients of `inputs`. `outputs` and `gradients` as for torch::autograd::backward; undefined ones are
  // skipped. `inputs` are leaves, or intermediate results (embeddings), whose own parameters then belong to the second
  // part. The result is undefined for inputs that do not require gradients or that no output depends on.
  std::vector<at::Tensor> InputGradients(const std::vector<at::Tensor>& outputs,
                                         const std::vector<at::Tensor>& gradients,
                                         const std::vector<at::Tensor>& inputs);
  // Call once, after InputGradients. Accumulates into .grad() of the parameters.
  void WeightGradients();

 private:
  struct Cut;
  std::unique_ptr<Cut> cut_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PIPELINE_SPLIT_BACKWARD_H_
