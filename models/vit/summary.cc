#include "models/vit/summary.h"

#include <string>
#include <utility>
#include <vector>

namespace plait::vit {
namespace {

using models::Layer;
using Shape = std::vector<std::int64_t>;

Layer Plain(const std::string& type, Shape shape) { return {.type = type, .output_shape = std::move(shape)}; }

Layer Norm(Shape shape) {
  Layer norm = Plain("LayerNorm", std::move(shape));
  norm.parameters = 2 * norm.output_shape.back();
  return norm;
}

Layer PatchEmbed(const VitOptions& o, std::int64_t batch) {
  const std::int64_t side = o.image_size / o.patch_size, parameters = (o.patch_dim() + 1) * o.dim;
  const Layer proj = {.type = "Conv2d",
                      .output_shape = {batch, o.dim, side, side},
                      .parameters = parameters,
                      .mult_adds = batch * o.patches() * parameters};
  Layer embed = Plain("PatchEmbed", {batch, o.patches(), o.dim});
  embed.children = {proj, Plain("Identity", embed.output_shape)};
  return embed;
}

Layer BlockLayer(const VitOptions& o, const Shape& hidden) {
  const auto wide = [&](std::int64_t width) { return Shape{hidden[0], hidden[1], width}; };
  Layer attention = Plain("Attention", hidden);
  attention.mult_adds = 2 * hidden[0] * hidden[1] * hidden[1] * o.inner_dim();
  attention.children = {models::LinearLayer(wide(3 * o.inner_dim()), o.dim, o.qkv_bias),
                        Plain("Dropout", {hidden[0], o.heads, hidden[1], hidden[1]}),
                        models::LinearLayer(hidden, o.inner_dim(), true), Plain("Dropout", hidden)};
  Layer mlp = Plain("Mlp", hidden);
  mlp.children = {models::LinearLayer(wide(o.mlp_dim), o.dim, true), Plain("GELU", wide(o.mlp_dim)),
                  models::LinearLayer(hidden, o.mlp_dim, true), Plain("Dropout", hidden)};
  Layer block = Plain("Block", hidden);
  block.repeat = o.depth;
  block.children = {Norm(hidden), attention, Norm(hidden), mlp};
  return block;
}

}  // namespace

models::Layer LayersOf(const VitOptions& o, std::int64_t batch) {
  const Shape hidden = {batch, o.tokens(), o.dim}, pooled = {batch, o.dim};
  const bool class_token = o.pool == Pool::kClassToken;
  Layer blocks = Plain("Sequential", hidden);
  blocks.children = {BlockLayer(o, hidden)};
  // The identities are timm's patch dropout and pre-norm, which this model does not have.
  return {
      .type = "VisionTransformer",
      .output_shape = {batch, o.classes},
      .parameters = (o.tokens() + (class_token ? 1 : 0)) * o.dim,
      .children = {PatchEmbed(o, batch), Plain("Dropout", hidden), Plain("Identity", hidden),
                   Plain("Identity", hidden), blocks, class_token ? Norm(hidden) : Plain("Identity", hidden),
                   class_token ? Plain("Identity", pooled) : Norm(pooled), Plain("Dropout", pooled),
                   models::LinearLayer({batch, o.classes}, o.dim, true)}};
}

std::int64_t InputBytes(const VitOptions& o, std::int64_t batch, std::int64_t element_bytes) {
  return batch * o.channels * o.image_size * o.image_size * element_bytes;
}

}  // namespace plait::vit
