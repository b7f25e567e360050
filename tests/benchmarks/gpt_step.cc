// Steps of nanoGPT's model at its setting for processors, beside peer_step.py --model=gpt; see
// sharded_steps.h.
#include "models/gpt/gpt.h"

#include <memory>

#include "tests/benchmarks/sharded_steps.h"

namespace plait::benchmarks {
namespace {

std::unique_ptr<models::BlockModel> Make(const StepSizes& sizes, at::ScalarType type) {
  return std::make_unique<gpt::Gpt>(gpt::GptOptions{.vocab_size = sizes.vocab_size,
                                                    .block_size = sizes.block_size,
                                                    .n_layer = sizes.n_layer,
                                                    .n_head = sizes.n_head,
                                                    .n_embd = sizes.n_embd,
                                                    .bias = false},
                                    at::TensorOptions(at::kMeta).dtype(type));
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  return plait::benchmarks::ShardedStepsMain(argc, argv, "gpt_step", {}, plait::benchmarks::Make);
}
