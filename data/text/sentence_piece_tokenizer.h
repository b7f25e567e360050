// Tokens of a SentencePiece model (Kudo and Richardson, arXiv:1808.06226), as Llama's, from its tokenizer.model.
//
//   PLAIT_ASSIGN_OR_RETURN(const SentencePieceTokenizer tokenizer, SentencePieceTokenizer::Load(folder));
//   tokenizer.Encode("Hello world");             // {1, 15043, 3186} with Llama 2's file: 1 begins a text
//
// A text begins with the model's token for that, if it has one, and a space is put before its first word; Decode
// leaves both out again, of ids that begin so. What the library's normalization changes in a text stays changed.
#ifndef PLAIT_DATA_TEXT_SENTENCE_PIECE_TOKENIZER_H_
#define PLAIT_DATA_TEXT_SENTENCE_PIECE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/text/tokenizer.h"

namespace plait::data {

class SentencePieceModel;

// The file's name in a folder of Hugging Face.
inline constexpr char kSentencePieceFile[] = "tokenizer.model";

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // Of `folder`'s tokenizer.model. NotFound where it is missing, DataLoss where it is damaged.
  static absl::StatusOr<SentencePieceTokenizer> Load(const std::string& folder);
  ~SentencePieceTokenizer() override;
  SentencePieceTokenizer(SentencePieceTokenizer&&) noexcept;

  std::string name() const override { return "SentencePiece"; }
  std::int32_t vocabulary_size() const override;
  std::uint32_t digest() const override { return digest_; }
  // Never fails: a character that the model lacks is its bytes, or the unknown token.
  absl::StatusOr<std::vector<std::int32_t>> Encode(absl::string_view text) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const std::int32_t> ids) const override;

 private:
  SentencePieceTokenizer(std::unique_ptr<const SentencePieceModel> model, std::uint32_t digest);

  std::unique_ptr<const SentencePieceModel> model_;
  std::uint32_t digest_ = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_SENTENCE_PIECE_TOKENIZER_H_
