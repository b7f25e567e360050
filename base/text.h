// UTF-8 text: decoding, terminal width, wrapping, quoting.
//
//   for (absl::string_view rest = text; !rest.empty();) {
//     const CodePoint point = FirstCodePoint(rest);
//     if (point.value < 0) ...                        // a byte that is not UTF-8
//     rest.remove_prefix(point.bytes);
//   }
#ifndef PLAIT_BASE_TEXT_H_
#define PLAIT_BASE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace plait::base {

struct CodePoint {
  std::int32_t value;  // -1: the first byte does not begin a valid sequence
  std::int32_t bytes;  // length of the sequence, 1 to 4; 1 if the value is -1
};

// The first code point of a non-empty text. Strict (RFC 3629): overlong forms, surrogates and values above
// U+10FFFF are invalid.
CodePoint FirstCodePoint(absl::string_view text);

// Appends the UTF-8 form of a valid code point.
void AppendUtf8(std::int32_t code_point, std::string& out);

// `text` with every invalid byte replaced by U+FFFD.
std::string ValidUtf8(absl::string_view text);

// `text` with every invalid byte replaced by `invalid` and every ASCII control character (newlines too) by `control`.
std::string Printable(absl::string_view text, absl::string_view invalid = "?",
                      absl::string_view control = " ");

// For the contents and attributes of HTML and SVG: & < > " ' become entities, invalid bytes U+FFFD, control
// characters spaces.
std::string EscapeHtml(absl::string_view text);

// `text` with every character outside of printable ASCII replaced by '?', but 'µ' by 'u'. Newlines are kept.
std::string AsciiOnly(absl::string_view text);

// Number of code points, which is the width in a terminal for scripts whose characters take one column.
int TextWidth(absl::string_view text);

// The first `columns` code points.
absl::string_view TextPrefix(absl::string_view text, int columns);

// Lines of at most `columns` code points, split at spaces; longer words are cut. Lines after the first begin
// with `indent` spaces, which must be fewer than `columns`. Returns at least one line.
std::vector<std::string> WrapText(absl::string_view text, int columns, int indent = 0);

// Words as a shell command line, quoted where necessary: "printf '%s x' a".
std::string ShellCommand(const std::vector<std::string>& words);

}  // namespace plait::base

#endif  // PLAIT_BASE_TEXT_H_
