// GPT-2's byte-level BPE tokenizer. Every byte string can be encoded, and Decode returns exactly the same bytes.
//
//   PLAIT_ASSIGN_OR_RETURN(const BytePairTokenizer tokenizer, BytePairTokenizer::Load(folder));
//   tokenizer.Encode("Hello world");             // {15496, 995} with GPT-2's files
//
// Sennrich, Haddow, Birch, ACL 2016, on bytes as in Radford et al. 2019. The folder holds the two files as
// Hugging Face names them, vocab.json and merges.txt, or as OpenAI does, encoder.json and vocab.bpe:
//
//   vocab.json   {"!": 0, ..., "\u0120world": 995, ...}   token to id; bytes as printable characters (CharacterOfByte)
//   merges.txt   "#version: 0.2", then one pair per line, "h e": two tokens to merge, in order of priority
//
// Special tokens such as "<|endoftext|>" in the input are encoded as ordinary text; their ids are decoded.
#ifndef PLAIT_DATA_TEXT_BYTE_PAIR_TOKENIZER_H_
#define PLAIT_DATA_TEXT_BYTE_PAIR_TOKENIZER_H_

#include <array>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "data/text/tokenizer.h"

namespace plait::data {

class BytePairTokenizer : public Tokenizer {
 public:
  // NotFound if a file is missing; DataLoss, naming the file (and the line of merges), if the JSON is damaged, ids
  // are not 0..n-1 once each, one of the 256 bytes has no token, a merge is given twice or names a token that is
  // not in the vocabulary, or no merge makes a token of several bytes that is not special (<...>, [...]). Errors of
  // CheckCutsAsGpt2 and CheckAdds (tokenizer_settings.h): byte pairs of another model, as Llama 3's, and settings that
  // put a space or a token beside each text are InvalidArgument.
  static absl::StatusOr<BytePairTokenizer> Load(const std::string& folder);
  // The same from the contents of the two files alone; the names appear in messages.
  static absl::StatusOr<BytePairTokenizer> Parse(const std::string& vocabulary, const std::string& merges,
                                                 const std::string& vocabulary_name = "vocab.json",
                                                 const std::string& merges_name = "merges.txt");

  std::string name() const override { return "GPT-2 byte pairs"; }
  std::int32_t vocabulary_size() const override { return bytes_of_.size(); }
  std::uint32_t digest() const override { return digest_; }
  std::optional<std::int32_t> end_of_text() const override { return end_of_text_; }
  // Never fails. Time is linear in the text, plus O(n log n) for each new piece of n bytes.
  absl::StatusOr<std::vector<std::int32_t>> Encode(absl::string_view text) const override;

 private:
  void AppendBytes(std::int32_t id, std::string& text) const override;
  friend class BytePairReader;
  struct Merge {
    std::int32_t rank;  // position in the list of merges, from 0
    std::int32_t id;    // of the merged token
  };
  static std::uint64_t Pair(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }

  BytePairTokenizer() = default;
  const Merge* FindMerge(std::int32_t left, std::int32_t right) const;
  std::vector<std::int32_t> EncodePiece(absl::string_view piece) const;

  std::vector<std::string> bytes_of_;  // by id
  std::array<std::int32_t, 256> id_of_byte_ = {};
  absl::flat_hash_map<std::uint64_t, Merge> merges_;
  std::optional<std::int32_t> end_of_text_;
  std::uint32_t digest_ = 0;
};

// The character that represents a byte in the two files: the byte itself if it is printable Latin-1 other than a
// space, else U+0100, U+0101, ... in order.
std::int32_t CharacterOfByte(std::uint8_t byte);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_BYTE_PAIR_TOKENIZER_H_
