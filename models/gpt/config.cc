#include "models/gpt/config.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/status_macros.h"
#include "models/hugging_face/config.h"
#include "nlohmann/json.hpp"

namespace plait::gpt {
namespace {

using hugging_face::Json, hugging_face::ReadSize, hugging_face::Refuse;

// Transformers takes a common name (GPT2Config.attribute_map) before the model's own.
absl::Status ReadSizes(const Json& config, GptOptions& options) {
  const std::tuple<const char*, const char*, std::int64_t*> sizes[] = {
      {"n_positions", "max_position_embeddings", &options.block_size},
      {"n_layer", "num_hidden_layers", &options.n_layer},
      {"n_head", "num_attention_heads", &options.n_head},
      {"n_embd", "hidden_size", &options.n_embd}};
  for (const auto& [own, common, size] : sizes) {
    PLAIT_RETURN_IF_ERROR(ReadSize(config, own, *size));
    PLAIT_RETURN_IF_ERROR(ReadSize(config, common, *size));
  }
  return ReadSize(config, "vocab_size", options.vocab_size);
}

absl::Status CheckFunction(const Json& config, const GptOptions& options) {
  const std::pair<const char*, bool> switches[] = {{"scale_attn_weights", true},
                                                   {"scale_attn_by_inverse_layer_idx", false},
                                                   {"add_cross_attention", false},
                                                   {"tie_word_embeddings", true}};
  for (const auto& [key, value] : switches) {
    PLAIT_RETURN_IF_ERROR(hugging_face::Expect(config, key, value, value ? "true" : "false"));
  }
  if (config.contains("n_inner") && !config["n_inner"].is_null() && config["n_inner"] != 4 * options.n_embd) {
    return Refuse("n_inner", config["n_inner"], "null or 4 n_embd");
  }
  const Json epsilon = config.value("layer_norm_epsilon", Json(1e-5));
  if (!epsilon.is_number() || std::abs(epsilon.get<double>() - 1e-5) > 1e-12) {
    return Refuse("layer_norm_epsilon", epsilon, "1e-05");
  }
  return absl::OkStatus();
}

absl::StatusOr<Gelu> GeluNamed(const Json& name) {
  if (name == "gelu") return Gelu::kExact;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Gelu::kTanh;
  return Refuse("activation_function", name, "\"gelu\", \"gelu_new\" or \"gelu_pytorch_tanh\"");
}

std::optional<std::int64_t> BeginOfText(const hugging_face::SpecialTokens& special) {
  if (special.begin_of_text.has_value() || special.ends_of_text.empty()) return special.begin_of_text;
  return special.ends_of_text.front();
}

}  // namespace

absl::StatusOr<GptOptions> OptionsFromConfig(absl::string_view text) {
  PLAIT_ASSIGN_OR_RETURN(const Json config, hugging_face::ParseConfig(text));
  const Json type = config.value("model_type", Json());
  if (type != "gpt2") return Refuse("model_type", type, "\"gpt2\"");
  GptOptions options;
  PLAIT_RETURN_IF_ERROR(ReadSizes(config, options));
  PLAIT_ASSIGN_OR_RETURN(options.gelu, GeluNamed(config.value("activation_function", Json("gelu_new"))));
  const Json bias = config.value("bias", Json(true));
  if (!bias.is_boolean()) return Refuse("bias", bias, "true or false");
  options.bias = bias;
  PLAIT_RETURN_IF_ERROR(CheckFunction(config, options));
  PLAIT_RETURN_IF_ERROR(Validate(options));
  return options;
}

std::string ConfigText(const GptOptions& options, const hugging_face::SpecialTokens& special) {
  nlohmann::ordered_json config = {
      {"architectures", {"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"vocab_size", options.vocab_size},
      {"n_positions", options.block_size},
      {"n_layer", options.n_layer},
      {"n_head", options.n_head},
      {"n_embd", options.n_embd},
      {"activation_function", options.gelu == Gelu::kTanh ? "gelu_new" : "gelu"},
      {"layer_norm_epsilon", 1e-5},
      {"embd_pdrop", options.dropout},
      {"attn_pdrop", options.dropout},
      {"resid_pdrop", options.dropout},
      {"bos_token_id", hugging_face::BeginValue(BeginOfText(special))},
      {"eos_token_id", hugging_face::EndValue(special.ends_of_text)},
      {"tie_word_embeddings", true},
  };
  if (!options.bias) config["bias"] = false;
  return config.dump(2) + "\n";
}

}  // namespace plait::gpt
