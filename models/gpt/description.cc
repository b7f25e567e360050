// Gpt::Description(), which is text only.
#include <string>

#include "absl/strings/str_cat.h"
#include "models/gpt/gpt.h"
#include "models/layer_text.h"

namespace plait::gpt {
namespace {

using models::DropoutText, models::EmbeddingText, models::LinearText;

std::string BlockText(const GptOptions& options) {
  const std::int64_t width = options.n_embd;
  const std::string dropout = DropoutText(options.dropout);
  const std::string gelu = options.gelu == Gelu::kTanh ? "tanh" : "none";
  return absl::StrCat("Block(\n",                                                                //
                      "        (ln_1): LayerNorm()\n",                                           //
                      "        (attn): CausalSelfAttention(\n",                                  //
                      "          (c_attn): ", LinearText(width, 3 * width, options.bias), "\n",  //
                      "          (c_proj): ", LinearText(width, width, options.bias), "\n",      //
                      "          (attn_dropout): ", dropout, "\n",                               //
                      "          (resid_dropout): ", dropout, "\n", "        )\n",               //
                      "        (ln_2): LayerNorm()\n",                                           //
                      "        (mlp): MLP(\n",                                                   //
                      "          (c_fc): ", LinearText(width, 4 * width, options.bias), "\n",    //
                      "          (gelu): GELU(approximate='", gelu, "')\n",                      //
                      "          (c_proj): ", LinearText(4 * width, width, options.bias), "\n",  //
                      "          (dropout): ", dropout, "\n", "        )\n", "      )\n");
}

}  // namespace

std::string Gpt::Description() const {
  return absl::StrCat("GPT(\n  (transformer): ModuleDict(\n",                                    //
                      "    (wte): ", EmbeddingText(options_.vocab_size, options_.n_embd), "\n",  //
                      "    (wpe): ", EmbeddingText(options_.block_size, options_.n_embd), "\n",  //
                      "    (drop): ", DropoutText(options_.dropout), "\n",                       //
                      "    (h): ModuleList(\n", "      ", models::RepeatText(options_.n_layer),
                      BlockText(options_), "    )\n",        //
                      "    (ln_f): LayerNorm()\n", "  )\n",  //
                      "  (lm_head): ", LinearText(options_.n_embd, options_.vocab_size, false), "\n)");
}

}  // namespace plait::gpt
