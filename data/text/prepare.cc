#include "data/text/prepare.h"

#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "data/cache_folder.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/text/character_tokenizer.h"
#include "data/text/sentence_piece_tokenizer.h"
#include "data/text/text_files.h"
#include "data/text/tokenizer_folder.h"

namespace plait::data {
namespace {

constexpr char kCharacters[] = "characters";

// Whether the prepared file can be used as it is; adds a note if it is damaged.
bool IsUsable(const std::string& path, const std::string& key, std::vector<std::string>& notes) {
  if (!std::filesystem::exists(path)) return false;
  const absl::StatusOr<std::string> found = ReadPreparedTextKey(path);
  const absl::Status status = found.ok() ? ReadPreparedText(path).status() : found.status();
  if (!status.ok()) notes.push_back(absl::StrCat(status.message(), ": prepared again"));
  return status.ok() && *found == key;
}

}  // namespace

absl::StatusOr<PreparedTextFile> PrepareText(const TextOptions& options) {
  std::unique_ptr<Tokenizer> tokenizer;  // null for characters, whose vocabulary is the text's
  if (options.tokenizer != kCharacters) {
    PLAIT_ASSIGN_OR_RETURN(tokenizer, LoadTokenizer(options.bpe_folder, options.tokenizer));
  }
  PLAIT_ASSIGN_OR_RETURN(const TextInput input, ReadText(options.text));
  PLAIT_ASSIGN_OR_RETURN(const std::string cache, MadeCacheFolder(options.cache_dir));
  const std::string key = PreparedTextKey(input.text, tokenizer ? tokenizer->digest() : 0);
  // One file per text and tokenizer, so that programs with different texts do not overwrite each other's cache.
  const std::uint32_t name = Crc32(key.data(), std::ssize(key));
  PreparedTextFile file{absl::StrFormat("%s/text_%08x.h5", cache, name), {}};
  if (IsUsable(file.path, key, file.notes)) return file;
  PLAIT_ASSIGN_OR_RETURN(const PreparedText made,
                         tokenizer ? Tokenize(input, *tokenizer) : TokenizeCharacters(input));
  PLAIT_RETURN_IF_ERROR(CacheError(WritePreparedText(file.path, made, key), options.cache_dir));
  file.notes.push_back(absl::StrCat("Prepared ", input.source, ": ", made.Summary(), ", ", file.path));
  return file;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const PreparedText& text,
                                                         const std::string& bpe_folder) {
  if (!text.code_points.empty()) {
    PLAIT_ASSIGN_OR_RETURN(CharacterTokenizer tokenizer,
                           CharacterTokenizer::FromCodePoints(text.code_points));
    return std::make_unique<CharacterTokenizer>(std::move(tokenizer));
  }
  const bool pieces = text.tokenizer == kSentencePieceName;
  PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                         LoadTokenizer(bpe_folder, pieces ? kSentencePiece : kGpt2));
  if (tokenizer->digest() == text.tokenizer_digest) return tokenizer;
  return absl::FailedPreconditionError(absl::StrCat(
      bpe_folder, ": ", tokenizer->vocabulary_size(), " tokens, another vocabulary than the ",
      text.vocabulary_size, " that the text was prepared with: give that folder, or prepare the text again"));
}

}  // namespace plait::data
