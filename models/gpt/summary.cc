#include "models/gpt/summary.h"

#include <string>
#include <utility>
#include <vector>

#include "models/moe/summary.h"

namespace plait::gpt {
namespace {

using models::Layer;

struct Sizes {
  GptOptions options;
  std::int64_t batch, seq;

  std::vector<std::int64_t> Shape(std::int64_t width) const { return {batch, seq, width}; }
  Layer Plain(const std::string& type) const { return {.type = type, .output_shape = Shape(options.n_embd)}; }
  Layer Linear(std::int64_t in, std::int64_t out) const {
    return models::LinearLayer(Shape(out), in, options.bias);
  }
  Layer Norm() const {
    Layer norm = Plain("LayerNorm");
    norm.parameters = options.n_embd * (options.bias ? 2 : 1);
    return norm;
  }
};

Layer Attention(const Sizes& sizes) {
  const std::int64_t width = sizes.options.n_embd;
  Layer attention = sizes.Plain("CausalSelfAttention");
  attention.mult_adds = 2 * sizes.batch * sizes.seq * sizes.seq * width;
  attention.children = {sizes.Linear(width, 3 * width), sizes.Linear(width, width), sizes.Plain("Dropout")};
  return attention;
}

Layer Mlp(const Sizes& sizes) {
  const std::int64_t width = sizes.options.n_embd;
  Layer mlp = sizes.Plain("MLP");
  mlp.children = {sizes.Linear(width, 4 * width),
                  {.type = "GELU", .output_shape = sizes.Shape(4 * width)},
                  sizes.Linear(4 * width, width),
                  sizes.Plain("Dropout")};
  return mlp;
}

}  // namespace

models::Layer LayersOf(const GptOptions& options, std::int64_t batch, std::int64_t seq) {
  const Sizes sizes = {options, batch, seq};
  Layer blocks = {.type = "ModuleList", .output_shape = {}};
  for (std::int64_t first = 0; first < options.n_layer; first += blocks.children.back().repeat) {
    const bool experts = options.HasExperts(first);
    Layer block = sizes.Plain("Block");
    while (first + block.repeat < options.n_layer && options.HasExperts(first + block.repeat) == experts) {
      ++block.repeat;
    }
    block.children = {sizes.Norm(), Attention(sizes), sizes.Norm(),
                      experts ? moe::LayerOf(options.moe, sizes.Shape(options.n_embd)) : Mlp(sizes)};
    blocks.children.push_back(std::move(block));
  }
  const Layer transformer = {
      .type = "ModuleDict",
      .output_shape = {},
      .children = {models::EmbeddingLayer(sizes.Shape(options.n_embd), options.vocab_size),
                   models::EmbeddingLayer({seq, options.n_embd}, options.block_size), sizes.Plain("Dropout"),
                   blocks, sizes.Norm()}};
  Layer head = models::LinearLayer(sizes.Shape(options.vocab_size), options.n_embd, false);
  head.shared = true;
  return {.type = "GPT", .output_shape = sizes.Shape(options.vocab_size), .children = {transformer, head}};
}

}  // namespace plait::gpt
