// "bos_token_id" and "eos_token_id" of a language model's config.json.
#ifndef PLAIT_MODELS_HUGGING_FACE_SPECIAL_TOKENS_H_
#define PLAIT_MODELS_HUGGING_FACE_SPECIAL_TOKENS_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace plait::hugging_face {

// Ids from 0 to 2^31 - 1. Each of ends_of_text ends a text; the file has null for none, a number for one, a list for
// several. Without them transformers' generate() does not end a text by itself.
struct SpecialTokens {
  std::optional<std::int64_t> begin_of_text = {};
  std::vector<std::int64_t> ends_of_text = {};

  bool operator==(const SpecialTokens&) const = default;
};

}  // namespace plait::hugging_face

#endif  // PLAIT_MODELS_HUGGING_FACE_SPECIAL_TOKENS_H_
