// Reading config.json: what all models share. Absent keys have Transformers' defaults, which the caller
// sets beforehand; errors are InvalidArgument "KEY is VALUE; expected ...", without a path. Local.
#ifndef PLAIT_MODELS_HUGGING_FACE_CONFIG_H_
#define PLAIT_MODELS_HUGGING_FACE_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace plait::hugging_face {

using Json = nlohmann::json;

// FOLDER/config.json, of at most kMostConfigBytes; errors name it.
inline constexpr std::int64_t kMostConfigBytes = std::int64_t{1} << 24;
std::string ConfigPath(const std::string& folder);
absl::StatusOr<std::string> ReadConfig(const std::string& folder);

// The object in `text`. InvalidArgument: it is none, or nested deeper than any.
absl::StatusOr<Json> ParseConfig(absl::string_view text);
absl::Status Refuse(absl::string_view key, const Json& value, absl::string_view expected);

// A key that is there has this value; as text for people: `expected`.
absl::Status Expect(const Json& config, const char* key, const Json& value, absl::string_view expected);
absl::Status ReadSize(const Json& config, const char* key, std::int64_t& size);  // 1 to 2^31
absl::Status ReadPositive(const Json& config, const char* key, double& number);

}  // namespace plait::hugging_face

#endif  // PLAIT_MODELS_HUGGING_FACE_CONFIG_H_
