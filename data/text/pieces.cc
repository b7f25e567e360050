#include "data/text/pieces.h"

#include "absl/strings/match.h"
#include "base/text.h"
#include "data/text/unicode_class.h"

namespace plait::data {
namespace {

// Bytes of the characters of one class from `begin` on; `last` becomes the length of the last one.
std::size_t RunLength(absl::string_view text, std::size_t begin, UnicodeClass kind, std::size_t& last) {
  std::size_t end = begin;
  while (end < text.size()) {
    const base::CodePoint point = base::FirstCodePoint(text.substr(end));
    if (ClassOf(point.value) != kind) break;
    last = point.bytes;
    end += point.bytes;
  }
  return end - begin;
}

std::size_t ContractionLength(absl::string_view text) {
  if (text[0] != '\'') return 0;
  for (const absl::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (absl::StartsWith(text, ending)) return ending.size();
  }
  return 0;
}

// \s+(?!\S)|\s+: all white space at the end of the text, else all but its last character (" word" is one piece), or a
// single character.
std::size_t SpaceLength(absl::string_view text) {
  std::size_t last = 0;
  const std::size_t run = RunLength(text, 0, UnicodeClass::kSpace, last);
  return run == text.size() || run == last ? run : run - last;
}

}  // namespace

absl::string_view NextPiece(absl::string_view text) {
  if (const std::size_t length = ContractionLength(text); length > 0) return text.substr(0, length);
  const std::size_t blank = text[0] == ' ' ? 1 : 0;
  if (blank < text.size()) {
    const UnicodeClass kind = ClassOf(base::FirstCodePoint(text.substr(blank)).value);
    std::size_t last = 0;
    if (kind != UnicodeClass::kSpace) return text.substr(0, blank + RunLength(text, blank, kind, last));
  }
  return text.substr(0, SpaceLength(text));
}

}  // namespace plait::data
