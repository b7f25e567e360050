// config.json of Hugging Face's ViT, as text, both ways. Local.
#ifndef PLAIT_MODELS_VIT_CONFIG_H_
#define PLAIT_MODELS_VIT_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/vit/options.h"

namespace plait::vit {

// config.json as text. InvalidArgument, without a path: not JSON, another "model_type", a size that is no positive
// number, an option whose function Vit does not have (named). Dropout is not taken from it: 0.
absl::StatusOr<VitOptions> OptionsFromConfig(absl::string_view text);
// Classes without names are LABEL_0, LABEL_1, ...
std::string ConfigText(const VitOptions& options, const std::vector<std::string>& class_names = {});

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_CONFIG_H_
