#include "models/hugging_face/config.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_depth.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"

namespace plait::hugging_face {

Json IdOrNull(const std::optional<std::int64_t>& id) { return id.has_value() ? Json(*id) : Json(); }

absl::StatusOr<Json> ParseConfig(absl::string_view text) {
  if (base::JsonDepth(text) > base::kDeepestJson) {
    return absl::InvalidArgumentError(absl::StrCat("is nested ", base::JsonDepth(text), " deep; expected ",
                                                   base::kDeepestJson, " at most"));
  }
  Json config = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return absl::InvalidArgumentError("is not a JSON object");
  return config;
}

absl::StatusOr<std::string> ReadConfig(const std::string& folder) {
  return data::ReadWholeFile(ConfigPath(folder), kMostConfigBytes);
}

std::string ConfigPath(const std::string& folder) { return folder + "/config.json"; }

absl::Status Refuse(absl::string_view key, const Json& value, absl::string_view expected) {
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80);
  return absl::InvalidArgumentError(absl::StrCat("\"", key, "\" is ", text, "; expected ", expected));
}

absl::Status Expect(const Json& config, const char* key, const Json& value, absl::string_view expected) {
  const auto found = config.find(key);
  return found == config.end() || *found == value ? absl::OkStatus() : Refuse(key, *found, expected);
}

absl::Status ReadSize(const Json& config, const char* key, std::int64_t& size) {
  const auto found = config.find(key);
  if (found == config.end()) return absl::OkStatus();
  constexpr std::int64_t kLargest = std::int64_t{1} << 31;
  if (!found->is_number_integer() || *found < 1 || *found > kLargest) {
    return Refuse(key, *found, absl::StrCat("an integer from 1 to ", kLargest));
  }
  size = *found;
  return absl::OkStatus();
}

absl::Status ReadPositive(const Json& config, const char* key, double& number) {
  const auto found = config.find(key);
  if (found == config.end()) return absl::OkStatus();
  if (!found->is_number() || !(found->get<double>() > 0) || !std::isfinite(found->get<double>())) {
    return Refuse(key, *found, "a positive number");
  }
  number = *found;
  return absl::OkStatus();
}

}  // namespace plait::hugging_face
