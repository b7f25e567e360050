#include "models/llama/config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/hugging_face/config.h"
#include "nlohmann/json.hpp"

namespace plait::llama {
namespace {

using hugging_face::Expect, hugging_face::Json, hugging_face::ReadPositive, hugging_face::ReadSize,
    hugging_face::Refuse;

absl::Status ReadSizes(const Json& config, LlamaOptions& options) {
  options.dim = 4096;
  options.hidden = 11008;
  options.n_layers = 32;
  options.n_heads = 32;
  options.norm_eps = 1e-6;
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "vocab_size", options.vocab_size));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "max_position_embeddings", options.max_seq_len));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "hidden_size", options.dim));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "intermediate_size", options.hidden));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "num_hidden_layers", options.n_layers));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "num_attention_heads", options.n_heads));
  options.n_kv_heads = options.n_heads;
  const bool grouped = config.contains("num_key_value_heads") && !config["num_key_value_heads"].is_null();
  if (grouped) PLAIT_RETURN_IF_ERROR(ReadSize(config, "num_key_value_heads", options.n_kv_heads));
  return ReadPositive(config, "rms_norm_eps", options.norm_eps);
}

// Transformers 5 keeps all of it in rope_parameters, earlier versions rope_theta beside rope_scaling.
absl::Status ReadRotations(const Json& config, LlamaOptions& options) {
  PLAIT_RETURN_IF_ERROR(ReadPositive(config, "rope_theta", options.rope_theta));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json rope = config.value(key, Json());
    if (rope.is_null()) continue;
    if (!rope.is_object()) return Refuse(key, rope, "an object or null");
    const Json type = rope.value("rope_type", rope.value("type", Json("default")));
    if (type != "default") {
      return Refuse(absl::StrCat(key, ".rope_type"), type,
                    "\"default\"; Plait's Llama has no scaled rotations");
    }
    PLAIT_RETURN_IF_ERROR(Expect(rope, "partial_rotary_factor", 1.0, "1"));
    PLAIT_RETURN_IF_ERROR(ReadPositive(rope, "rope_theta", options.rope_theta));
  }
  return absl::OkStatus();
}

absl::Status CheckFunction(const Json& config, const LlamaOptions& options) {
  PLAIT_RETURN_IF_ERROR(Expect(config, "hidden_act", "silu", "\"silu\""));
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    PLAIT_RETURN_IF_ERROR(Expect(config, key, false, "false"));
  }
  const Json width = config.value("head_dim", Json());
  if (width.is_null() || width == options.dim / options.n_heads) return absl::OkStatus();
  return Refuse("head_dim", width, "null or hidden_size / num_attention_heads");
}

}  // namespace

absl::StatusOr<LlamaConfig> ConfigFrom(absl::string_view text) {
  PLAIT_ASSIGN_OR_RETURN(const Json config, hugging_face::ParseConfig(text));
  const Json type = config.value("model_type", Json());
  if (type != "llama") return Refuse("model_type", type, "\"llama\"");
  LlamaConfig read;
  PLAIT_RETURN_IF_ERROR(ReadSizes(config, read.options));
  PLAIT_RETURN_IF_ERROR(ReadRotations(config, read.options));
  PLAIT_RETURN_IF_ERROR(CheckFunction(config, read.options));
  const Json tied = config.value("tie_word_embeddings", Json(false));
  if (!tied.is_boolean()) return Refuse("tie_word_embeddings", tied, "true or false");
  read.tied = tied;
  PLAIT_RETURN_IF_ERROR(Validate(read.options));
  return read;
}

std::string ConfigText(const LlamaOptions& options, const hugging_face::SpecialTokens& special) {
  const nlohmann::ordered_json config = {
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"vocab_size", options.vocab_size},
      {"max_position_embeddings", options.max_seq_len},
      {"hidden_size", options.dim},
      {"intermediate_size", options.hidden},
      {"num_hidden_layers", options.n_layers},
      {"num_attention_heads", options.n_heads},
      {"num_key_value_heads", options.n_kv_heads},
      {"head_dim", options.dim / options.n_heads},
      {"hidden_act", "silu"},
      {"rms_norm_eps", options.norm_eps},
      {"rope_theta", options.rope_theta},
      {"rope_scaling", nullptr},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"bos_token_id", hugging_face::BeginValue(special.begin_of_text)},
      {"eos_token_id", hugging_face::EndValue(special.ends_of_text)},
      {"tie_word_embeddings", false},
  };
  return config.dump(2) + "\n";
}

}  // namespace plait::llama
