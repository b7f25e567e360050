// SentencePiece BPE models (Kudo and Richardson, arXiv:1808.06226), such as Llama's tokenizer.model.
//
//   PLAIT_ASSIGN_OR_RETURN(const SentencePieceTokenizer tokenizer, SentencePieceTokenizer::Load(folder));
//   tokenizer.Encode("Hello world");             // {1, 15043, 3186} with Llama 2's file: 1 begins a text
//
// Encode prepends the model's BOS token, if it has one and tokenizer_config.json beside the file does not say
// "add_bos_token": false, and a space if the model asks for it (add_dummy_prefix). Decode removes both if the ids begin
// with BOS. A byte that is not UTF-8 becomes U+FFFD; extra spaces are removed if the model asks for it
// (remove_extra_whitespaces). Control tokens such as "<s>" in the input are encoded as ordinary text.
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
inline constexpr char kSentencePieceName[] = "SentencePiece";

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // Reads tokenizer.model in `folder`. NotFound; DataLoss if the file is damaged or not a SentencePiece model;
  // InvalidArgument if the model is not supported: not BPE, with unused pieces, with normalization rules, without
  // U+2581 for spaces before words, or with user-defined pieces that have spaces which it removes from texts; errors of
  // AddsBeginOfText and, for "add_prefix_space" and "add_eos_token", of CheckAdds (tokenizer_settings.h). Where the
  // first is false, begin_of_text is nullopt, and the digest another one.
  static absl::StatusOr<SentencePieceTokenizer> Load(const std::string& folder);
  // The same from the contents of the file alone; the name appears in messages.
  static absl::StatusOr<SentencePieceTokenizer> Parse(const std::string& bytes,
                                                      const std::string& name = kSentencePieceFile);

  std::string name() const override { return kSentencePieceName; }
  std::int32_t vocabulary_size() const override { return bytes_of_.size(); }
  std::uint32_t digest() const override { return digest_; }
  std::optional<std::int32_t> begin_of_text() const override { return begin_; }
  std::optional<std::int32_t> end_of_text() const override { return end_; }
  // Never fails: a character without a piece is encoded as its bytes, or, in models without byte fallback, a run of
  // such characters as the unknown token.
  absl::StatusOr<std::vector<std::int32_t>> Encode(absl::string_view text) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const std::int32_t> ids) const override;

 private:
  friend class SentencePieceReader;
  void AppendBytes(std::int32_t id, std::string& text) const override;
  struct Piece {
    std::int32_t id;
    float score;  // the highest is merged first
  };

  // A part of a text. User-defined pieces (`whole`) are never merged.
  struct Symbol {
    absl::string_view text;
    bool whole;
    bool operator==(const Symbol&) const = default;
  };

  SentencePieceTokenizer() = default;
  std::string Normalized(absl::string_view text) const;
  // Length in bytes of the user-defined piece, else of the character, at the start of `text`; true for the former.
  std::pair<std::size_t, bool> FirstSymbol(absl::string_view text) const;
  std::vector<Symbol> Merged(absl::string_view text) const;

  std::vector<std::string> bytes_of_;  // by id, with the space before a word; none of control tokens
  absl::flat_hash_map<std::string, Piece> pieces_;  // of text only
  std::vector<std::string> user_defined_;           // the longest first
  std::array<std::int32_t, 256> id_of_byte_ = {};
  bool has_bytes_ = false;
  bool adds_prefix_ = false;
  bool removes_extra_spaces_ = false;
  bool goes_over_words_ = false;  // a piece has U+2581 behind another character
  std::int32_t unknown_ = -1;
  std::optional<std::int32_t> begin_, end_;
  std::uint32_t digest_ = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_SENTENCE_PIECE_TOKENIZER_H_
