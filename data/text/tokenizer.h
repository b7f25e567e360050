// The interface of tokenizers: text to token ids and back.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int32_t> ids, tokenizer.Encode("To be"));
//   PLAIT_ASSIGN_OR_RETURN(const std::string text, tokenizer.Decode(ids));
//
// Implementations are immutable, hence thread-safe. Local.
#ifndef PLAIT_DATA_TEXT_TOKENIZER_H_
#define PLAIT_DATA_TEXT_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plait::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // A name for messages: "characters", "GPT-2 byte pairs".
  virtual std::string name() const = 0;
  // Ids are 0..vocabulary_size()-1.
  virtual std::int32_t vocabulary_size() const = 0;
  // Checksum of the tokenizer's files or characters: almost certainly different for tokenizers that give other ids.
  virtual std::uint32_t digest() const = 0;
  // The token that Encode puts before every text, and the one that separates documents ("<|endoftext|>", "</s>"), which
  // Encode never gives; nullopt if the vocabulary has none.
  virtual std::optional<std::int32_t> begin_of_text() const { return std::nullopt; }
  virtual std::optional<std::int32_t> end_of_text() const { return std::nullopt; }

  // InvalidArgument, naming the place, for text that the tokenizer has no ids for.
  virtual absl::StatusOr<std::vector<std::int32_t>> Encode(absl::string_view text) const = 0;
  // Inverse of Encode. InvalidArgument for an id outside the vocabulary. The result for a part of a text may begin or
  // end within a UTF-8 character.
  virtual absl::StatusOr<std::string> Decode(absl::Span<const std::int32_t> ids) const;

 private:
  // Appends the bytes of token `id`, which is in the vocabulary.
  virtual void AppendBytes(std::int32_t id, std::string& text) const = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TOKENIZER_H_
