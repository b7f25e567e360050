#include "data/text/tokenizer_settings.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/json_depth.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

using Json = nlohmann::json;

// Largest file; tokenizer.json has the vocabulary too, which takes up to 20 MB.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;

// Null if there is no such file, else an object.
absl::StatusOr<Json> Read(const std::string& path) {
  Json read;
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMostBytes);
  if (absl::IsNotFound(text.status())) return read;
  PLAIT_RETURN_IF_ERROR(text.status());
  if (base::JsonDepth(*text) <= base::kDeepestJson) {
    read = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  }
  if (read.is_object()) return read;
  return absl::DataLossError(absl::StrCat(path, ": expected a JSON object, nested at most ",
                                          base::kDeepestJson, " deep; the file of ", text->size(),
                                          " bytes is damaged or another one"));
}

absl::Status Refuse(const std::string& path, absl::string_view key, const Json& value,
                    absl::string_view expected) {
  const std::string found = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": \"", key, "\" is ", found.substr(0, 80), "; expected ", expected));
}

// Null if it is missing.
Json ValueOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

bool IsOrLacks(const Json& object, const char* key, bool value) {
  const auto found = object.find(key);
  return found == object.end() || *found == value;
}

}  // namespace

absl::Status CheckCutsAsGpt2(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const Json pipeline, Read(path));
  if (pipeline.is_null()) return absl::OkStatus();
  const Json normalizer = ValueOf(pipeline, "normalizer"), cutter = ValueOf(pipeline, "pre_tokenizer");
  if (!normalizer.is_null()) {
    return Refuse(path, "normalizer", normalizer, "null: byte pairs are of texts as they are, as GPT-2's");
  }
  if (ValueOf(cutter, "type") == "ByteLevel" && IsOrLacks(cutter, "use_regex", true) &&
      IsOrLacks(cutter, "add_prefix_space", false)) {
    return absl::OkStatus();
  }
  return Refuse(path, "pre_tokenizer", cutter,
                "GPT-2's, ByteLevel with its regular expression and without add_prefix_space: "
                "texts would get other ids than the model's");
}

absl::Status CheckAdds(const std::string& path, const char* key, bool value) {
  PLAIT_ASSIGN_OR_RETURN(const Json settings, Read(path));
  const Json given = ValueOf(settings, key);
  if (given.is_null() || given == value) return absl::OkStatus();
  return Refuse(path, key, given,
                absl::StrCat(value ? "true" : "false", ": texts would get other ids than the model's"));
}

absl::StatusOr<bool> AddsBeginOfText(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const Json settings, Read(path));
  constexpr char kKey[] = "add_bos_token";
  const auto found = settings.find(kKey);
  if (found == settings.end()) return true;
  if (found->is_boolean()) return found->get<bool>();
  return Refuse(path, kKey, *found, "true or false");
}

}  // namespace plait::data
