// What Hugging Face's JSON files beside a vocabulary say about its use.
//
// DataLoss, naming the file, if one is there but not a JSON object, nested deeper than base::kDeepestJson, or larger
// than 2^28 bytes; InvalidArgument for a value that is not supported: FILE: "KEY" is VALUE; expected ... Local.
#ifndef PLAIT_DATA_TEXT_TOKENIZER_SETTINGS_H_
#define PLAIT_DATA_TEXT_TOKENIZER_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::data {

inline constexpr char kPipelineFile[] = "tokenizer.json", kSettingsFile[] = "tokenizer_config.json";

// `path`: of tokenizer.json in a tokenizer's folder. If it is there, it must cut texts into words as GPT-2 does
// (pieces.h): no "normalizer", a "pre_tokenizer" that is ByteLevel, with its regular expression (the default) and
// without a space in front, and a "post_processor" that adds no tokens: ByteLevel or none.
absl::Status CheckCutsAsGpt2(const std::string& path);

// `path`: of tokenizer_config.json. Its value of `key`, if it has one but null, must be `value`.
absl::Status CheckAdds(const std::string& path, const char* key, bool value);

// `path`: of tokenizer_config.json. Its "add_bos_token": whether the token that begins a text goes in front of each. True
// if the file or the key is missing, or the value null.
absl::StatusOr<bool> AddsBeginOfText(const std::string& path);

// Texts by id of the tokens that `folder` adds to a vocabulary, or names again: of added_tokens.json ({TEXT: ID}),
// "added_tokens" of tokenizer.json and "added_tokens_decoder" of tokenizer_config.json. None without these files.
// Encode and Decode of Plait's tokenizers know those alone that are in the vocabulary too.
absl::StatusOr<std::map<std::int32_t, std::string>> AddedTokens(const std::string& folder);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TOKENIZER_SETTINGS_H_
