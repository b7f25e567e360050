// Tokens of a SentencePiece model of byte pairs (Kudo and Richardson, arXiv:1808.06226), as Llama's, from its tokenizer.model.
//
//   PLAIT_ASSIGN_OR_RETURN(const SentencePieceTokenizer tokenizer, SentencePieceTokenizer::Load(folder));
//   tokenizer.Encode("Hello world");             // {1, 15043, 3186} with Llama 2's file: 1 begins a text
//
// A text begins with the model's token for that, if it has one, and a space is put before its first word; Decode
// leaves both out again, of ids that begin so. A byte that is not UTF-8 becomes U+FFFD, and extra spaces are left out
// where the model says so. The text of control tokens ("<s>") is text as any other.
#ifndef PLAIT_DATA_TEXT_SENTENCE_PIECE_TOKENIZER_H_
#define PLAIT_DATA_TEXT_SENTENCE_PIECE_TOKENIZER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "data/text/tokenizer.h"

namespace plait::data {

// The file's name in a folder of Hugging Face.
inline constexpr char kSentencePieceFile[] = "tokenizer.model";

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // Of `folder`'s tokenizer.model. NotFound where it is missing; DataLoss where it is damaged or no such model;
  // InvalidArgument where it is one that is not read here: of another kind than byte pairs, with unused pieces, or with a
  // normalization of texts beyond spaces.
  static absl::StatusOr<SentencePieceTokenizer> Load(const std::string& folder);
  // The same from the file's bytes; the name is for messages.
  static absl::StatusOr<SentencePieceTokenizer> Parse(const std::string& bytes,
                                                      const std::string& name = kSentencePieceFile);

  std::string name() const override { return "SentencePiece"; }
  std::int32_t vocabulary_size() const override { return bytes_of_.size(); }
  std::uint32_t digest() const override { return digest_; }
  // Never fails: a character that the model lacks is its bytes, or a run of them is the unknown token.
  absl::StatusOr<std::vector<std::int32_t>> Encode(absl::string_view text) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const std::int32_t> ids) const override;

 private:
  friend class SentencePieceReader;
  void AppendBytes(std::int32_t id, std::string& text) const override;
  struct Piece {
    std::int32_t id;
    float score;  // the highest is merged first
  };

  SentencePieceTokenizer() = default;
  std::string Normalized(absl::string_view text) const;
  // Bytes of the user-defined piece, or else of the character, that a text begins with; and whether it was the former.
  std::pair<std::size_t, bool> FirstSymbol(absl::string_view text) const;

  std::vector<std::string> bytes_of_;  // by id, with the space before a word; none of control tokens
  absl::flat_hash_map<std::string, Piece> pieces_;  // of text only
  std::vector<std::string> user_defined_;           // the longest first
  std::array<std::int32_t, 256> id_of_byte_ = {};
  bool has_bytes_ = false;
  bool adds_prefix_ = false;
  bool removes_extra_spaces_ = false;
  std::int32_t unknown_ = -1;
  std::optional<std::int32_t> begin_;
  std::uint32_t digest_ = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_SENTENCE_PIECE_TOKENIZER_H_
