#include "models/hugging_face/config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_depth.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"

namespace plait::hugging_face {
namespace {

bool IsId(const Json& value) {
  return value.is_number_integer() && value >= 0 && value <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

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

absl::StatusOr<SpecialTokens> SpecialTokensFrom(absl::string_view text) {
  constexpr char kBegin[] = "bos_token_id", kEnd[] = "eos_token_id";
  PLAIT_ASSIGN_OR_RETURN(const Json config, ParseConfig(text));
  const Json begin = config.value(kBegin, Json()), end = config.value(kEnd, Json());
  if (!begin.is_null() && !IsId(begin))
    return Refuse(kBegin, begin, "an integer from 0 to 2^31 - 1, or null");
  // A number counts as a list of itself, null as an empty one.
  if (end.is_object() || !std::all_of(end.begin(), end.end(), IsId)) {
    return Refuse(kEnd, end, "an integer from 0 to 2^31 - 1, a list of such, or null");
  }
  SpecialTokens special;
  if (!begin.is_null()) special.begin_of_text = begin.get<std::int64_t>();
  for (const Json& id : end) special.ends_of_text.push_back(id);
  return special;
}

Json BeginValue(const std::optional<std::int64_t>& begin_of_text) {
  return begin_of_text.has_value() ? Json(*begin_of_text) : Json();
}

Json EndValue(const std::vector<std::int64_t>& ends_of_text) {
  if (ends_of_text.size() > 1) return Json(ends_of_text);
  return ends_of_text.empty() ? Json() : Json(ends_of_text.front());
}

}  // namespace plait::hugging_face
