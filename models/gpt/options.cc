#include "models/gpt/options.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plait::gpt {
namespace {

struct Preset {
  const char* name;
  GptOptions options;
};

GptOptions Published(std::int64_t layers, std::int64_t heads, std::int64_t width) {
  return {.n_layer = layers, .n_head = heads, .n_embd = width, .gelu = Gelu::kTanh};
}

GptOptions WithoutBias(std::int64_t layers, std::int64_t heads, std::int64_t width, std::int64_t positions,
                       double dropout = 0) {
  return {.block_size = positions,
          .n_layer = layers,
          .n_head = heads,
          .n_embd = width,
          .dropout = dropout,
          .bias = false};
}

std::array<Preset, 8> Presets() {
  return {{{"gpt2", Published(12, 12, 768)},
           {"gpt2-medium", Published(24, 16, 1024)},
           {"gpt2-large", Published(36, 20, 1280)},
           {"gpt2-xl", Published(48, 25, 1600)},
           {"llama2B", WithoutBias(10, 32, 4096, 1024)},
           {"llama7B", WithoutBias(32, 32, 4096, 1024)},
           {"shakespeare", WithoutBias(6, 6, 384, 256, 0.2)},
           {"cpu", WithoutBias(4, 4, 128, 64)}}};
}

}  // namespace

absl::Status Validate(const GptOptions& options) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"vocab_size", options.vocab_size},
                                                        {"block_size", options.block_size},
                                                        {"n_layer", options.n_layer},
                                                        {"n_head", options.n_head},
                                                        {"n_embd", options.n_embd}};
  for (const auto& [name, size] : sizes) {
    if (size <= 0)
      return absl::InvalidArgumentError(absl::StrCat(name, " is ", size, "; expected at least 1"));
  }
  if (options.n_embd % options.n_head != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "n_embd is ", options.n_embd, "; expected a multiple of n_head, which is ", options.n_head));
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dropout is ", options.dropout, "; expected a number in [0, 1)"));
  }
  if (options.moe_every < 1 || options.moe_every > options.n_layer) {
    return absl::InvalidArgumentError(absl::StrCat("moe_every is ", options.moe_every,
                                                   "; expected 1 to n_layer, which is ", options.n_layer));
  }
  return moe::Validate(options.moe);
}

models::ModelSizes SizesOf(const GptOptions& o) {
  models::ModelSizes sizes = {
      .layers = o.n_layer,
      .shapes = {{o.vocab_size, o.n_embd}, {o.block_size, o.n_embd}, {o.n_layer, o.n_embd, o.n_embd}}};
  if (!o.moe.used()) return sizes;
  const std::int64_t mixtures = o.n_layer / o.moe_every;
  sizes.shapes.push_back({mixtures, o.moe.gate.experts, o.moe.hidden, o.n_embd});
  if (o.moe.shared_hidden > 0) sizes.shapes.push_back({mixtures, o.moe.shared_hidden, o.n_embd});
  return sizes;
}

absl::StatusOr<GptOptions> PresetNamed(absl::string_view name) {
  for (const Preset& preset : Presets()) {
    if (name == preset.name) return preset.options;
  }
  return absl::InvalidArgumentError(absl::StrCat("no preset \"", name, "\"; there are ", PresetNames()));
}

std::string PresetNames() {
  return absl::StrJoin(Presets(), ", ",
                       [](std::string* out, const Preset& preset) { out->append(preset.name); });
}

}  // namespace plait::gpt
