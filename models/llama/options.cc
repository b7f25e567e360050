#include "models/llama/options.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace plait::llama {

// Most elements of a rotary table, positions times head width: two million positions for heads of width 128. Both
// tables then have 2 GiB in float32.
constexpr std::int64_t kLargestTable = std::int64_t{1} << 28;

absl::Status Validate(const LlamaOptions& options) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"vocab_size", options.vocab_size},
                                                        {"max_seq_len", options.max_seq_len},
                                                        {"dim", options.dim},
                                                        {"n_layers", options.n_layers},
                                                        {"n_heads", options.n_heads},
                                                        {"n_kv_heads", options.n_kv_heads},
                                                        {"hidden", options.hidden}};
  for (const auto& [name, size] : sizes) {
    if (size <= 0)
      return absl::InvalidArgumentError(absl::StrCat(name, " is ", size, "; expected at least 1"));
  }
  if (options.dim % (2 * options.n_heads) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dim is ", options.dim, "; expected heads of an even width, and n_heads is ", options.n_heads));
  }
  if (!(options.norm_eps > 0 && options.rope_theta > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("norm_eps is ", options.norm_eps, ", rope_theta ",
                                                   options.rope_theta, "; expected positive numbers"));
  }
  if (const std::int64_t width = options.dim / options.n_heads; options.max_seq_len > kLargestTable / width) {
    return absl::InvalidArgumentError(absl::StrCat("max_seq_len is ", options.max_seq_len,
                                                   "; expected at most ", kLargestTable / width,
                                                   ", for heads of width ", width));
  }
  if (options.n_heads % options.n_kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "n_kv_heads is ", options.n_kv_heads, "; expected a divisor of n_heads, which is ", options.n_heads));
  }
  return absl::OkStatus();
}

models::ModelSizes SizesOf(const LlamaOptions& o) {
  return {.layers = o.n_layers,
          .shapes = {{o.vocab_size, o.dim}, {o.n_layers, o.dim, o.dim}, {o.n_layers, o.dim, o.hidden}}};
}

}  // namespace plait::llama
