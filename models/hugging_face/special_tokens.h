// "bos_token_id" and "eos_token_id" of a language model's config.json.
#ifndef PLAIT_MODELS_HUGGING_FACE_SPECIAL_TOKENS_H_
#define PLAIT_MODELS_HUGGING_FACE_SPECIAL_TOKENS_H_

#include <cstdint>
#include <optional>

namespace plait::hugging_face {

// Those of the model's tokenizer. Without them transformers' generate() does not end a text by itself.
struct SpecialTokens {
  std::optional<std::int64_t> begin_of_text = {}, end_of_text = {};
};

}  // namespace plait::hugging_face

#endif  // PLAIT_MODELS_HUGGING_FACE_SPECIAL_TOKENS_H_
