#include "models/llama/summary.h"

#include <vector>

namespace plait::llama {

using models::Layer;

models::Layer LayersOf(const LlamaOptions& options, std::int64_t batch, std::int64_t seq) {
  const std::int64_t dim = options.dim, kv = dim / options.n_heads * options.n_kv_heads;
  const auto shape = [&](std::int64_t width) { return std::vector<std::int64_t>{batch, seq, width}; };
  const auto linear = [&](std::int64_t in, std::int64_t out) {
    return models::LinearLayer(shape(out), in, false);
  };
  const Layer norm = {.type = "RMSNorm", .output_shape = shape(dim), .parameters = dim};
  const Layer attention = {
      .type = "Attention",
      .output_shape = shape(dim),
      .mult_adds = 2 * batch * seq * seq * dim,
      .children = {linear(dim, dim), linear(dim, kv), linear(dim, kv), linear(dim, dim)}};
  const Layer feed_forward = {
      .type = "FeedForward",
      .output_shape = shape(dim),
      .children = {linear(dim, options.hidden), linear(options.hidden, dim), linear(dim, options.hidden)}};
  const Layer block = {.type = "TransformerBlock",
                       .output_shape = shape(dim),
                       .repeat = options.n_layers,
                       .children = {attention, feed_forward, norm, norm}};
  return {.type = "Transformer",
          .output_shape = shape(options.vocab_size),
          .children = {models::EmbeddingLayer(shape(dim), options.vocab_size),
                       {.type = "ModuleList", .output_shape = {}, .children = {block}},
                       norm,
                       linear(dim, options.vocab_size)}};
}

}  // namespace plait::llama
