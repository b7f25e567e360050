// Gpt::Description().
#include <string>

#include "absl/strings/str_cat.h"
#include "models/gpt/gpt.h"
#include "models/layer_text.h"
#include "models/moe/summary.h"

namespace plait::gpt {
namespace {

using models::DropoutText, models::EmbeddingText, models::LinearText;

std::string MlpText(const GptOptions& options) {
  const std::int64_t width = options.n_embd;
  const std::string gelu = options.gelu == Gelu::kTanh ? "tanh" : "none";
  return absl::StrCat("MLP(\n",                                                                  //
                      "          (c_fc): ", LinearText(width, 4 * width, options.bias), "\n",    //
                      "          (gelu): GELU(approximate='", gelu, "')\n",                      //
                      "          (c_proj): ", LinearText(4 * width, width, options.bias), "\n",  //
                      "          (dropout): ", DropoutText(options.dropout), "\n", "        )");
}

std::string BlockText(const GptOptions& options, bool with_experts) {
  const std::int64_t width = options.n_embd;
  const std::string dropout = DropoutText(options.dropout);
  return absl::StrCat(
      "Block(\n",                                                                //
      "        (ln_1): LayerNorm()\n",                                           //
      "        (attn): CausalSelfAttention(\n",                                  //
      "          (c_attn): ", LinearText(width, 3 * width, options.bias), "\n",  //
      "          (c_proj): ", LinearText(width, width, options.bias), "\n",      //
      "          (attn_dropout): ", dropout, "\n",                               //
      "          (resid_dropout): ", dropout, "\n", "        )\n",               //
      "        (ln_2): LayerNorm()\n",                                           //
      "        (mlp): ", with_experts ? moe::DescriptionOf(options.moe, width, "        ") : MlpText(options),
      "\n", "      )\n");
}

// Consecutive identical blocks are printed once.
std::string BlocksText(const GptOptions& options) {
  std::string text;
  for (std::int64_t first = 0, end = 0; first < options.n_layer; first = end) {
    const bool experts = options.HasExperts(first);
    for (end = first + 1; end < options.n_layer && options.HasExperts(end) == experts;) ++end;
    absl::StrAppend(&text, "      ", models::RepeatText(end - first, first), BlockText(options, experts));
  }
  return text;
}

}  // namespace

std::string Gpt::Description() const {
  return absl::StrCat("GPT(\n  (transformer): ModuleDict(\n",                                    //
                      "    (wte): ", EmbeddingText(options_.vocab_size, options_.n_embd), "\n",  //
                      "    (wpe): ", EmbeddingText(options_.block_size, options_.n_embd), "\n",  //
                      "    (drop): ", DropoutText(options_.dropout), "\n",                       //
                      "    (h): ModuleList(\n", BlocksText(options_), "    )\n",                 //
                      "    (ln_f): LayerNorm()\n", "  )\n",                                      //
                      "  (lm_head): ", LinearText(options_.n_embd, options_.vocab_size, false), "\n)");
}

}  // namespace plait::gpt
