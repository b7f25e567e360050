#include "data/text/tokenizer_settings.h"

#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
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
constexpr char kOtherIds[] = ": texts would get other ids than the model's";

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

// On one line, and no longer than a message should be.
std::string Shown(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace).substr(0, 80);
}

absl::Status Refuse(const std::string& path, const std::string& key, const Json& value,
                    absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", Shown(key), " is ", Shown(value), "; expected ", expected));
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

using TextsById = std::map<std::int32_t, std::string>;

// False if they are no id and no text.
bool Add(const Json& id, const Json& text, TextsById& tokens) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  const std::int64_t number = id.is_number_integer() ? id.get<std::int64_t>() : -1;
  if (number < 0 || number > kLargest || !text.is_string()) return false;
  const std::string content = text;
  if (content.empty()) return false;
  tokens.emplace(static_cast<std::int32_t>(number), content);
  return true;
}

absl::Status AddPlain(const std::string& path, TextsById& tokens) {
  PLAIT_ASSIGN_OR_RETURN(const Json file, Read(path));
  for (const auto& [text, id] : file.items()) {
    if (!Add(id, text, tokens)) return Refuse(path, text, id, "a text and its id, an integer from 0");
  }
  return absl::OkStatus();
}

absl::Status AddOfPipeline(const std::string& path, TextsById& tokens) {
  constexpr char kKey[] = "added_tokens";
  PLAIT_ASSIGN_OR_RETURN(const Json file, Read(path));
  const Json list = ValueOf(file, kKey);
  if (!list.is_null() && !list.is_array()) return Refuse(path, kKey, list, "a list or null");
  for (const Json& token : list) {
    if (!Add(ValueOf(token, "id"), ValueOf(token, "content"), tokens)) {
      return Refuse(path, kKey, token, "each with \"id\", an integer from 0, and \"content\", a text");
    }
  }
  return absl::OkStatus();
}

absl::Status AddOfSettings(const std::string& path, TextsById& tokens) {
  constexpr char kKey[] = "added_tokens_decoder";
  PLAIT_ASSIGN_OR_RETURN(const Json file, Read(path));
  const Json decoder = ValueOf(file, kKey);
  if (!decoder.is_null() && !decoder.is_object()) return Refuse(path, kKey, decoder, "an object or null");
  for (const auto& [key, token] : decoder.items()) {
    std::int32_t id = -1;
    if (!absl::SimpleAtoi(key, &id) || !Add(id, ValueOf(token, "content"), tokens)) {
      return Refuse(path, key, token, "an id, an integer from 0, and a \"content\", a text");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCutsAsGpt2(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const Json pipeline, Read(path));
  if (pipeline.is_null()) return absl::OkStatus();
  const Json normalizer = ValueOf(pipeline, "normalizer"), cutter = ValueOf(pipeline, "pre_tokenizer");
  if (!normalizer.is_null()) {
    return Refuse(path, "normalizer", normalizer, "null: byte pairs are of texts as they are, as GPT-2's");
  }
  if (ValueOf(cutter, "type") != "ByteLevel" || !IsOrLacks(cutter, "use_regex", true) ||
      !IsOrLacks(cutter, "add_prefix_space", false)) {
    return Refuse(path, "pre_tokenizer", cutter,
                  absl::StrCat("GPT-2's, ByteLevel with its regular expression and without add_prefix_space",
                               kOtherIds));
  }
  const Json adder = ValueOf(pipeline, "post_processor");
  if (adder.is_null() || ValueOf(adder, "type") == "ByteLevel") return absl::OkStatus();
  return Refuse(path, "post_processor", adder,
                absl::StrCat("null or ByteLevel, which add no tokens", kOtherIds));
}

absl::Status CheckAdds(const std::string& path, const char* key, bool value) {
  PLAIT_ASSIGN_OR_RETURN(const Json settings, Read(path));
  const Json given = ValueOf(settings, key);
  if (given.is_null() || given == value) return absl::OkStatus();
  return Refuse(path, key, given, absl::StrCat(value ? "true" : "false", kOtherIds));
}

absl::StatusOr<bool> AddsBeginOfText(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const Json settings, Read(path));
  constexpr char kKey[] = "add_bos_token";
  const Json given = ValueOf(settings, kKey);
  if (given.is_null()) return true;
  if (given.is_boolean()) return given.get<bool>();
  return Refuse(path, kKey, given, "true or false");
}

absl::StatusOr<std::map<std::int32_t, std::string>> AddedTokens(const std::string& folder) {
  TextsById tokens;
  PLAIT_RETURN_IF_ERROR(AddPlain(absl::StrCat(folder, "/added_tokens.json"), tokens));
  PLAIT_RETURN_IF_ERROR(AddOfPipeline(absl::StrCat(folder, "/", kPipelineFile), tokens));
  PLAIT_RETURN_IF_ERROR(AddOfSettings(absl::StrCat(folder, "/", kSettingsFile), tokens));
  return tokens;
}

}  // namespace plait::data
