// Steps of the 33.6 M Llama-like model, beside peer_step.py --model=llama; see sharded_steps.h.
#include "models/llama/llama.h"

#include <memory>

#include "tests/benchmarks/sharded_steps.h"

namespace plait::benchmarks {
namespace {

std::unique_ptr<models::BlockModel> Make(const StepSizes& sizes, at::ScalarType type) {
  return std::make_unique<llama::Llama>(llama::LlamaOptions{.vocab_size = sizes.vocab_size,
                                                            .max_seq_len = sizes.block_size,
                                                            .dim = sizes.n_embd,
                                                            .n_layers = sizes.n_layer,
                                                            .n_heads = sizes.n_head,
                                                            .n_kv_heads = sizes.n_kv_head,
                                                            .hidden = sizes.n_hidden},
                                        at::TensorOptions(at::kMeta).dtype(type));
}

constexpr StepSizes kSizes = {.batch_size = 4,
                              .block_size = 64,
                              .n_layer = 24,
                              .n_head = 16,
                              .n_kv_head = 4,
                              .n_embd = 256,
                              .n_hidden = 720,
                              .vocab_size = 32000,
                              .clip_norm = 0};

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  return plait::benchmarks::ShardedStepsMain(argc, argv, "llama_step", plait::benchmarks::kSizes,
                                             plait::benchmarks::Make);
}
