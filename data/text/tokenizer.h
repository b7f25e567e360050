// Text to token ids and back: what all tokenizers have in common.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int32_t> ids, tokenizer.Encode("To be"));
//   PLAIT_ASSIGN_OR_RETURN(const std::string text, tokenizer.Decode(ids));
//
// Implementations are immutable after they are made: any number of threads may use one. Local.
#ifndef PLAIT_DATA_TEXT_TOKENIZER_H_
#define PLAIT_DATA_TEXT_TOKENIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plait::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // What people call it, without numbers: "characters", "GPT-2 byte pairs".
  virtual std::string name() const = 0;
  // Ids are 0..vocabulary_size()-1.
  virtual std::int32_t vocabulary_size() const = 0;
  // The same for two tokenizers that give the same ids, and hardly ever for others.
  virtual std::uint32_t digest() const = 0;

  // InvalidArgument for text that the tokenizer has no ids for: which character, at which byte.
  virtual absl::StatusOr<std::vector<std::int32_t>> Encode(absl::string_view text) const = 0;
  // Inverse of Encode. InvalidArgument for an id outside the vocabulary. The bytes of a few ids need not be
  // whole UTF-8 characters.
  virtual absl::StatusOr<std::string> Decode(absl::Span<const std::int32_t> ids) const;

 private:
  // Appends the bytes that a token of the vocabulary stands for.
  virtual void AppendBytes(std::int32_t id, std::string& text) const = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TOKENIZER_H_
