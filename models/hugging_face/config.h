// Reads values of config.json, for all models. An absent key leaves the default that the caller has set; a value that
// does not fit is an InvalidArgument error, `"KEY" is VALUE; expected ...`, without a path. Local.
#ifndef PLAIT_MODELS_HUGGING_FACE_CONFIG_H_
#define PLAIT_MODELS_HUGGING_FACE_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/hugging_face/special_tokens.h"
#include "nlohmann/json.hpp"

namespace plait::hugging_face {

using Json = nlohmann::json;

// ReadConfig returns the contents of ConfigPath(folder), FOLDER/config.json; DataLoss if it has more than
// kMostConfigBytes. Errors name the file.
inline constexpr std::int64_t kMostConfigBytes = std::int64_t{1} << 24;
std::string ConfigPath(const std::string& folder);
absl::StatusOr<std::string> ReadConfig(const std::string& folder);

// Parses a JSON object. InvalidArgument if `text` is not one, or is nested deeper than base::kDeepestJson.
absl::StatusOr<Json> ParseConfig(absl::string_view text);
// The error for a value that does not fit; `expected` describes the values that do.
absl::Status Refuse(absl::string_view key, const Json& value, absl::string_view expected);

// An error if `key` is present with another value than `value`.
absl::Status Expect(const Json& config, const char* key, const Json& value, absl::string_view expected);
absl::Status ReadSize(const Json& config, const char* key, std::int64_t& size);  // 1 to 2^31
absl::Status ReadPositive(const Json& config, const char* key, double& number);

// `text`: the contents of config.json of a language model, whose vocabulary need not have these ids.
absl::StatusOr<SpecialTokens> SpecialTokensFrom(absl::string_view text);
// Their values in config.json.
Json BeginValue(const std::optional<std::int64_t>& begin_of_text);
Json EndValue(const std::vector<std::int64_t>& ends_of_text);

}  // namespace plait::hugging_face

#endif  // PLAIT_MODELS_HUGGING_FACE_CONFIG_H_
