// One token per character: the vocabulary is the sorted set of the characters of a text.
//
//   PLAIT_ASSIGN_OR_RETURN(const CharacterTokenizer tokenizer, CharacterTokenizer::Of(text));
//   tokenizer.vocabulary_size();                     // 65 for tiny Shakespeare
//
// A character is a Unicode code point, ids follow code point order: the ids of nanoGPT's character-level
// data sets (Karpathy 2022).
#ifndef PLAIT_DATA_TEXT_CHARACTER_TOKENIZER_H_
#define PLAIT_DATA_TEXT_CHARACTER_TOKENIZER_H_

#include "absl/container/flat_hash_map.h"
#include "data/text/tokenizer.h"

namespace plait::data {

class CharacterTokenizer : public Tokenizer {
 public:
  // The characters of `text` as vocabulary. InvalidArgument if it is empty or not UTF-8 (names the byte).
  static absl::StatusOr<CharacterTokenizer> Of(absl::string_view text);
  // From a stored vocabulary. DataLoss unless the code points are strictly ascending, valid and not empty.
  static absl::StatusOr<CharacterTokenizer> FromCodePoints(std::vector<std::int32_t> code_points);

  // Code points by id.
  const std::vector<std::int32_t>& code_points() const { return code_points_; }

  std::string name() const override { return "characters"; }
  std::int32_t vocabulary_size() const override { return code_points_.size(); }
  std::uint32_t digest() const override;
  absl::StatusOr<std::vector<std::int32_t>> Encode(absl::string_view text) const override;

 private:
  void AppendBytes(std::int32_t id, std::string& text) const override;
  explicit CharacterTokenizer(std::vector<std::int32_t> code_points);

  std::vector<std::int32_t> code_points_;
  absl::flat_hash_map<std::int32_t, std::int32_t> ids_;
};

// Decodes UTF-8. InvalidArgument, naming the first byte that is not UTF-8.
absl::StatusOr<std::vector<std::int32_t>> CodePointsOf(absl::string_view text);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_CHARACTER_TOKENIZER_H_
