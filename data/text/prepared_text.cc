#include "data/text/prepared_text.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/checked_array.h"
#include "data/text/character_tokenizer.h"

namespace plait::data {
namespace {

constexpr std::int64_t kLargestVocabulary = std::numeric_limits<std::uint16_t>::max() + 1;

struct Cut {
  std::size_t bytes;        // of the part for training
  std::int64_t characters;  // of the whole
};

std::size_t BytesOfCharacters(absl::string_view text, std::int64_t characters) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < characters; ++i) at += base::FirstCodePoint(text.substr(at)).bytes;
  return at;
}

Cut CutOf(absl::string_view text) {
  std::int64_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++characters) at += base::FirstCodePoint(text.substr(at)).bytes;
  return {BytesOfCharacters(text, characters * 9 / 10), characters};
}

absl::StatusOr<std::vector<std::uint16_t>> Tokens(const Tokenizer& tokenizer, absl::string_view text) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int32_t> ids, tokenizer.Encode(text));
  return std::vector<std::uint16_t>(ids.begin(), ids.end());
}

}  // namespace

std::string PreparedText::Summary() const {
  return absl::StrFormat("%s characters; vocabulary %s (%s); %s tokens for training, %s for validation",
                         base::FormatCount(characters), base::FormatCount(vocabulary_size), tokenizer,
                         base::FormatCount(train.size()), base::FormatCount(validation.size()));
}

absl::StatusOr<PreparedText> Tokenize(const TextInput& input, const Tokenizer& tokenizer) {
  if (tokenizer.vocabulary_size() > kLargestVocabulary) {
    return absl::InvalidArgumentError(absl::StrCat(input.source, ": a vocabulary of ",
                                                   tokenizer.vocabulary_size(), " tokens, at most ",
                                                   kLargestVocabulary, " fit the file's 16 bits"));
  }
  const absl::string_view text = input.text;
  const Cut cut = CutOf(text);
  if (cut.bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.source, ": a text of ", cut.characters,
                     " characters cannot be split into training and validation"));
  }
  PreparedText made;
  absl::StatusOr<std::vector<std::uint16_t>> train = Tokens(tokenizer, text.substr(0, cut.bytes));
  absl::StatusOr<std::vector<std::uint16_t>> validation = Tokens(tokenizer, text.substr(cut.bytes));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(train.status(), input.source));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(validation.status(), input.source));
  made.train = *std::move(train);
  made.validation = *std::move(validation);
  made.source = input.source;
  made.tokenizer = tokenizer.name();
  made.vocabulary_size = tokenizer.vocabulary_size();
  made.tokenizer_digest = tokenizer.digest();
  made.characters = cut.characters;
  return made;
}

absl::StatusOr<PreparedText> TokenizeCharacters(const TextInput& input) {
  const absl::StatusOr<CharacterTokenizer> tokenizer = CharacterTokenizer::Of(input.text);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(tokenizer.status(), input.source));
  PLAIT_ASSIGN_OR_RETURN(PreparedText made, Tokenize(input, *tokenizer));
  made.code_points = tokenizer->code_points();
  return made;
}

std::string PreparedTextKey(const std::string& text, std::uint32_t tokenizer_digest) {
  const std::uint32_t crc = Crc32(text.data(), std::ssize(text));
  return absl::StrFormat("text %d:%08x tokenizer %08x", text.size(), crc, tokenizer_digest);
}

}  // namespace plait::data
