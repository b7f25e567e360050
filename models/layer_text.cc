#include "models/layer_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace plait::models {

std::string LinearText(std::int64_t in, std::int64_t out, bool bias) {
  return absl::StrCat("Linear(in_features=", in, ", out_features=", out, ", bias=", bias ? "True" : "False",
                      ")");
}

std::string EmbeddingText(std::int64_t count, std::int64_t width) {
  return absl::StrCat("Embedding(", count, ", ", width, ")");
}

std::string DropoutText(double p) {
  const std::string number = absl::StrCat(p);
  // Python prints a float with a point, also where it is whole.
  const bool whole = !absl::StrContains(number, '.') && !absl::StrContains(number, 'e');
  return absl::StrCat("Dropout(p=", number, whole ? ".0" : "", ", inplace=False)");
}

std::string RepeatText(std::int64_t count, std::int64_t first) {
  if (count == 1) return absl::StrCat("(", first, "): ");
  return absl::StrCat("(", first, "-", first + count - 1, "): ", count, " x ");
}

}  // namespace plait::models
