#include "models/vit/preprocessor.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/hugging_face/config.h"
#include "nlohmann/json.hpp"

namespace plait::vit {
namespace {

using hugging_face::Json;

// Of do_normalize, do_rescale, do_center_crop.
absl::Status ReadSwitch(const Json& config, const char* key, bool& on) {
  const Json value = config.value(key, Json(on));
  if (!value.is_boolean()) return hugging_face::Refuse(key, value, "true or false");
  on = value;
  return absl::OkStatus();
}

absl::Status ReadNumbers(const Json& config, const char* key, std::int64_t channels, double least,
                         std::vector<double>& numbers) {
  const Json value = config.value(key, Json());
  const auto refused = [&] {
    return hugging_face::Refuse(
        key, value,
        absl::StrCat("a number for each of ", channels, " channels", least > 0 ? ", above 0" : ""));
  };
  if (!value.is_array() || static_cast<std::int64_t>(value.size()) != channels) return refused();
  for (const Json& number : value) {
    if (!number.is_number() || !(std::abs(number.get<double>()) <= 1e6)) return refused();
    if (number.get<double>() < least) return refused();
    numbers.push_back(number);
  }
  return absl::OkStatus();
}

// "size" and "crop_size": a number, or an object with the shortest edge or equal height and width.
absl::StatusOr<double> SideOf(const Json& config, const char* key) {
  const Json value = config.value(key, Json());
  Json side = value;
  if (value.is_object()) {
    side = value.value("shortest_edge", value.value("height", Json()));
    if (!value.contains("shortest_edge") && value.value("width", Json()) != side) {
      return hugging_face::Refuse(key, value, "the shortest edge, or a height and an equal width");
    }
  }
  if (!side.is_number() || !(side.get<double>() >= 1) || !(side.get<double>() <= 1e12)) {
    return hugging_face::Refuse(key, value, "a number of pixels");
  }
  return side.get<double>();
}

// Whether `size` has both sides: of a bare number CLIP's processors make the shortest edge, ViT's and DeiT's a square.
// ViT's, the default, has a size of its own.
bool Squeezes(const Json& config) {
  const Json size = config.value("size", Json());
  if (size.is_object()) return !size.contains("shortest_edge");
  const Json name = config.value("image_processor_type", config.value("feature_extractor_type", Json()));
  return !(name.is_string() && absl::StartsWith(name.get<std::string>(), "CLIP"));
}

// The whole shorter side unless the centre of what it is resized to is cut out.
absl::StatusOr<double> CentreFraction(const Json& config) {
  bool crops = false;
  PLAIT_RETURN_IF_ERROR(ReadSwitch(config, "do_center_crop", crops));
  if (!crops) return 1.0;
  PLAIT_ASSIGN_OR_RETURN(const double edge, SideOf(config, "size"));
  PLAIT_ASSIGN_OR_RETURN(const double crop, SideOf(config, "crop_size"));
  return std::min(crop / edge, 1.0);
}

}  // namespace

absl::StatusOr<Preprocessor> PreprocessorFrom(absl::string_view text, std::int64_t channels) {
  PLAIT_ASSIGN_OR_RETURN(const Json given, hugging_face::ParseConfig(text));
  // Without nulls, which transformers' fast processors write for what was not given.
  Json config = Json::object();
  config.merge_patch(given);
  bool resizes = true, rescales = true, normalizes = true;
  double factor = 1.0 / 255;
  PLAIT_RETURN_IF_ERROR(ReadSwitch(config, "do_resize", resizes));
  PLAIT_RETURN_IF_ERROR(ReadSwitch(config, "do_rescale", rescales));
  PLAIT_RETURN_IF_ERROR(ReadSwitch(config, "do_normalize", normalizes));
  PLAIT_RETURN_IF_ERROR(hugging_face::ReadPositive(config, "rescale_factor", factor));
  if (!resizes) return hugging_face::Refuse("do_resize", false, "true");
  if (!rescales) return hugging_face::Refuse("do_rescale", false, "true");
  if (std::abs(255 * factor - 1) > 1e-4) return hugging_face::Refuse("rescale_factor", factor, "1/255");
  Preprocessor made;
  PLAIT_ASSIGN_OR_RETURN(made.centre_fraction, CentreFraction(config));
  made.squeezes = Squeezes(config);
  const Json resample = config.value("resample", Json(kBilinear));
  if (!resample.is_number_integer() || resample.get<double>() < 0 || resample.get<double>() > 5) {
    return hugging_face::Refuse("resample", resample, "PIL's number of a filter, 0 to 5");
  }
  made.resample = resample;
  if (!normalizes) {
    made.mean.assign(channels, 0);
    made.deviation.assign(channels, 1);
    return made;
  }
  PLAIT_RETURN_IF_ERROR(ReadNumbers(config, "image_mean", channels, -1e6, made.mean));
  PLAIT_RETURN_IF_ERROR(ReadNumbers(config, "image_std", channels, 1e-6, made.deviation));
  return made;
}

std::string PreprocessorText(const Preprocessor& preprocessor, std::int64_t image_size) {
  const std::int64_t edge = std::llround(static_cast<double>(image_size) / preprocessor.centre_fraction);
  const bool squeezes = preprocessor.squeezes, crops = !squeezes || preprocessor.centre_fraction < 1;
  const char* const type = !squeezes ? "CLIPImageProcessor"
                           : crops   ? "DeiTImageProcessor"
                                     : "ViTImageProcessor";
  const nlohmann::ordered_json size = squeezes ? nlohmann::ordered_json{{"height", edge}, {"width", edge}}
                                               : nlohmann::ordered_json{{"shortest_edge", edge}};
  const nlohmann::ordered_json config = {{"image_processor_type", type},
                                         {"do_convert_rgb", preprocessor.mean.size() == 3},
                                         {"do_resize", true},
                                         {"size", size},
                                         {"resample", kBilinear},
                                         {"do_center_crop", crops},
                                         {"crop_size", {{"height", image_size}, {"width", image_size}}},
                                         {"do_rescale", true},
                                         {"rescale_factor", 1.0 / 255},
                                         {"do_normalize", true},
                                         {"image_mean", preprocessor.mean},
                                         {"image_std", preprocessor.deviation}};
  return config.dump(2) + "\n";
}

}  // namespace plait::vit
