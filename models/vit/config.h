// Parses and writes the config.json of Hugging Face's ViT. Local.
#ifndef PLAIT_MODELS_VIT_CONFIG_H_
#define PLAIT_MODELS_VIT_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/vit/options.h"

namespace plait::vit {

// `text`: the contents of config.json. InvalidArgument, without a path: not JSON, another "model_type", a size that is
// not a positive integer, an option that Vit does not support (named). Dropout is not read; it is 0.
absl::StatusOr<VitOptions> OptionsFromConfig(absl::string_view text);
// The names of the `classes` classes in such a config.json that OptionsFromConfig() has accepted. Empty: without a name,
// or LABEL_k. InvalidArgument, without a path: a name with a line break, which lists of classes (one per line) cannot
// hold.
absl::StatusOr<std::vector<std::string>> ClassNamesFromConfig(absl::string_view text, std::int64_t classes);
// The contents of config.json for a ViTForImageClassification. Class k without a name is LABEL_k.
std::string ConfigText(const VitOptions& options, const std::vector<std::string>& class_names = {});

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_CONFIG_H_
