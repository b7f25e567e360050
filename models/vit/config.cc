#include "models/vit/config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/hugging_face/config.h"
#include "nlohmann/json.hpp"

namespace plait::vit {

using hugging_face::Json;
using hugging_face::ReadSize;

absl::StatusOr<VitOptions> OptionsFromConfig(absl::string_view text) {
  PLAIT_ASSIGN_OR_RETURN(const Json config, hugging_face::ParseConfig(text));
  const Json type = config.value("model_type", Json());
  if (type != "vit") return hugging_face::Refuse("model_type", type, "\"vit\"");
  // Transformers' defaults.
  VitOptions options = {.dim = 768,
                        .depth = 12,
                        .heads = 12,
                        .mlp_dim = 3072,
                        .classes = 2,
                        .qkv_bias = true,
                        .pool = Pool::kClassToken,
                        .norm_eps = 1e-12};
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "image_size", options.image_size));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "patch_size", options.patch_size));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "num_channels", options.channels));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "hidden_size", options.dim));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "num_hidden_layers", options.depth));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "num_attention_heads", options.heads));
  PLAIT_RETURN_IF_ERROR(ReadSize(config, "intermediate_size", options.mlp_dim));
  PLAIT_RETURN_IF_ERROR(hugging_face::ReadPositive(config, "layer_norm_eps", options.norm_eps));
  PLAIT_RETURN_IF_ERROR(hugging_face::Expect(config, "hidden_act", "gelu", "\"gelu\""));
  const Json bias = config.value("qkv_bias", Json(true)), labels = config.value("id2label", Json());
  if (!bias.is_boolean()) return hugging_face::Refuse("qkv_bias", bias, "true or false");
  options.qkv_bias = bias;
  if (labels.is_object() && !labels.empty()) options.classes = static_cast<std::int64_t>(labels.size());
  if (options.dim % options.heads != 0) {
    return hugging_face::Refuse("hidden_size", Json(options.dim),
                                absl::StrCat("a multiple of num_attention_heads, which is ", options.heads));
  }
  options.head_dim = options.dim / options.heads;
  PLAIT_RETURN_IF_ERROR(Validate(options));
  return options;
}

absl::StatusOr<std::vector<std::string>> ClassNamesFromConfig(absl::string_view text, std::int64_t classes) {
  std::vector<std::string> names(static_cast<std::size_t>(classes));
  const absl::StatusOr<Json> config = hugging_face::ParseConfig(text);
  const Json labels = config.ok() ? config->value("id2label", Json()) : Json();
  for (std::size_t k = 0; labels.is_object() && k < names.size(); ++k) {
    const Json name = labels.value(absl::StrCat(k), Json());
    if (!name.is_string() || name == absl::StrCat("LABEL_", k)) continue;
    names[k] = name;
    if (names[k].find_first_of("\r\n") == std::string::npos) continue;
    return hugging_face::Refuse(absl::StrCat("id2label.", k), name, "a name without line breaks");
  }
  return names;
}

std::string ConfigText(const VitOptions& options, const std::vector<std::string>& class_names) {
  nlohmann::ordered_json names, numbers;
  for (std::int64_t k = 0; k < options.classes; ++k) {
    const bool named = k < static_cast<std::int64_t>(class_names.size()) && !class_names[k].empty();
    const std::string name = named ? class_names[k] : absl::StrCat("LABEL_", k);
    names[absl::StrCat(k)] = name;
    numbers.emplace(name, k);  // the first of two classes of a name, as of models that other programs write
  }
  const nlohmann::ordered_json config = {{"architectures", {"ViTForImageClassification"}},
                                         {"model_type", "vit"},
                                         {"image_size", options.image_size},
                                         {"patch_size", options.patch_size},
                                         {"num_channels", options.channels},
                                         {"hidden_size", options.dim},
                                         {"num_hidden_layers", options.depth},
                                         {"num_attention_heads", options.heads},
                                         {"intermediate_size", options.mlp_dim},
                                         {"hidden_act", "gelu"},
                                         {"layer_norm_eps", options.norm_eps},
                                         {"qkv_bias", options.qkv_bias},
                                         {"hidden_dropout_prob", options.dropout},
                                         {"attention_probs_dropout_prob", options.dropout},
                                         {"id2label", names},
                                         {"label2id", numbers}};
  // Names of classes are those of folders, which may not be UTF-8.
  return config.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace plait::vit
