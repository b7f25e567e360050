// Gpt::Description(), apart as it is text only.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/gpt/gpt.h"

namespace plait::gpt {
namespace {

// Python prints a float with a point, also where it is whole.
std::string Dropout(double p) {
  const std::string number = absl::StrCat(p);
  const bool whole = !absl::StrContains(number, '.') && !absl::StrContains(number, 'e');
  return absl::StrCat("Dropout(p=", number, whole ? ".0" : "", ", inplace=False)");
}

std::string Linear(std::int64_t in, std::int64_t out, bool bias) {
  return absl::StrCat("Linear(in_features=", in, ", out_features=", out, ", bias=", bias ? "True" : "False",
                      ")");
}

std::string Embedding(std::int64_t count, std::int64_t width) {
  return absl::StrCat("Embedding(", count, ", ", width, ")");
}

std::string BlockText(const GptOptions& options) {
  const std::int64_t width = options.n_embd;
  const std::string dropout = Dropout(options.dropout);
  const std::string gelu = options.gelu == Gelu::kTanh ? "tanh" : "none";
  return absl::StrCat("Block(\n",                                                            //
                      "        (ln_1): LayerNorm()\n",                                       //
                      "        (attn): CausalSelfAttention(\n",                              //
                      "          (c_attn): ", Linear(width, 3 * width, options.bias), "\n",  //
                      "          (c_proj): ", Linear(width, width, options.bias), "\n",      //
                      "          (attn_dropout): ", dropout, "\n",                           //
                      "          (resid_dropout): ", dropout, "\n", "        )\n",           //
                      "        (ln_2): LayerNorm()\n",                                       //
                      "        (mlp): MLP(\n",                                               //
                      "          (c_fc): ", Linear(width, 4 * width, options.bias), "\n",    //
                      "          (gelu): GELU(approximate='", gelu, "')\n",                  //
                      "          (c_proj): ", Linear(4 * width, width, options.bias), "\n",  //
                      "          (dropout): ", dropout, "\n", "        )\n", "      )\n");
}

}  // namespace

std::string Gpt::Description() const {
  const std::string blocks = options_.n_layer == 1
                                 ? "(0): "
                                 : absl::StrCat("(0-", options_.n_layer - 1, "): ", options_.n_layer, " x ");
  return absl::StrCat("GPT(\n  (transformer): ModuleDict(\n",                                      //
                      "    (wte): ", Embedding(options_.vocab_size, options_.n_embd), "\n",        //
                      "    (wpe): ", Embedding(options_.block_size, options_.n_embd), "\n",        //
                      "    (drop): ", Dropout(options_.dropout), "\n",                             //
                      "    (h): ModuleList(\n", "      ", blocks, BlockText(options_), "    )\n",  //
                      "    (ln_f): LayerNorm()\n", "  )\n",                                        //
                      "  (lm_head): ", Linear(options_.n_embd, options_.vocab_size, false), "\n)");
}

}  // namespace plait::gpt
