// Steps of nanoGPT's model at its setting for processors, beside peer_step.py --model=gpt; see
// sharded_steps.h.
#include "models/gpt/gpt.h"

#include "tests/benchmarks/sharded_steps.h"

namespace plait::benchmarks {
namespace {

SteppedModel Make(const StepSizes& sizes, at::ScalarType type) {
  const gpt::Gpt model({.vocab_size = sizes.vocab_size,
                        .block_size = sizes.block_size,
                        .n_layer = sizes.n_layer,
                        .n_head = sizes.n_head,
                        .n_embd = sizes.n_embd,
                        .bias = false},
                       at::TensorOptions(at::kMeta).dtype(type));
  return {
      .units = model.units(),
      .reset_parameters = [model](std::size_t unit) { model.ResetParameters(unit); },
      .set_block_runner = [model](models::BlockRunner runner) { model.set_block_runner(std::move(runner)); },
      .loss = [model](const at::Tensor& inputs,
                      const at::Tensor& targets) { return model.Loss(inputs, targets); }};
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  return plait::benchmarks::ShardedStepsMain(argc, argv, "gpt_step", {}, plait::benchmarks::Make);
}
