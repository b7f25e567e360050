// The sizes of a GPT, and presets.
//
//   PLAIT_ASSIGN_OR_RETURN(GptOptions options, PresetNamed("shakespeare"));
//   options.vocab_size = tokenizer.vocabulary_size();
//
// GPT-2: Radford et al., 2019.
#ifndef PLAIT_MODELS_GPT_OPTIONS_H_
#define PLAIT_MODELS_GPT_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/model_sizes.h"
#include "models/moe/options.h"

namespace plait::gpt {

enum class Gelu {
  kExact,  // x Phi(x)
  kTanh,   // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as GPT-2 was trained
};

struct GptOptions {
  std::int64_t vocab_size = 50257;
  std::int64_t block_size = 1024;  // maximum sequence length
  std::int64_t n_layer = 12, n_head = 12;
  std::int64_t n_embd = 768;  // a multiple of n_head
  double dropout = 0;         // in [0, 1)
  bool bias = true;           // in linear layers and norms
  Gelu gelu = Gelu::kExact;
  // Mixture of experts in place of the MLP of every `moe_every`-th block: moe_every - 1, 2 moe_every - 1, ...
  moe::MoeOptions moe = {};
  std::int64_t moe_every = 1;

  bool HasExperts(std::int64_t block) const { return moe.used() && (block + 1) % moe_every == 0; }

  friend bool operator==(const GptOptions&, const GptOptions&) = default;
};

// InvalidArgument if an option is out of range; the message names it.
absl::Status Validate(const GptOptions& options);

models::ModelSizes SizesOf(const GptOptions& options);

// Layers, heads and width:
//   gpt2 12/12/768, gpt2-medium 24/16/1024, gpt2-large 36/20/1280, gpt2-xl 48/25/1600 (with biases, as
//   published; activation kTanh); llama2B 10/32/4096 and llama7B 32/32/4096 (GPTs of those sizes);
//   shakespeare 6/6/384 of 256 positions with dropout 0.2; cpu 4/4/128 of 64 positions.
// InvalidArgument if there is no such preset; the message lists them.
absl::StatusOr<GptOptions> PresetNamed(absl::string_view name);
// "gpt2, gpt2-medium, ...".
std::string PresetNames();

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_OPTIONS_H_
