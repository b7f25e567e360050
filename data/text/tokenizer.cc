#include "data/text/tokenizer.h"

#include "absl/strings/str_cat.h"

namespace plait::data {

absl::StatusOr<std::string> Tokenizer::Decode(absl::Span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", id, " is unknown: the vocabulary is 0..", vocabulary_size() - 1));
    }
    AppendBytes(id, text);
  }
  return text;
}

}  // namespace plait::data
