// UTF-8, and the classes of characters that tokenizers tell apart.
//
//   for (absl::string_view rest = text; !rest.empty();) {
//     const CodePoint point = FirstCodePoint(rest);
//     if (point.value < 0) ...                        // a byte that is not UTF-8
//     if (ClassOf(point.value) == UnicodeClass::kLetter) ...
//     rest.remove_prefix(point.bytes);
//   }
//
// The table of classes is the project's own (Unicode 16.0, unicode_ranges.cc, made by
// make_unicode_ranges.py) and not the system's ICU: the same text must give the same tokens on every
// machine, or a checkpoint and the data it was trained on come apart.
#ifndef PLAIT_DATA_TEXT_UNICODE_CLASS_H_
#define PLAIT_DATA_TEXT_UNICODE_CLASS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace plait::data {

enum class UnicodeClass : std::uint8_t {
  kOther,   // all else, unassigned characters and bytes that are not UTF-8 too
  kLetter,  // general category L: \p{L} of regular expressions
  kNumber,  // general category N: \p{N}
  kSpace,   // property White_Space: \s
};

// A negative value is kOther.
UnicodeClass ClassOf(std::int32_t code_point);

struct CodePoint {
  std::int32_t value;  // -1: the first byte does not begin a valid sequence
  std::int32_t bytes;  // its length, 1 to 4; 1 where the value is -1
};

// The first character of a text that is not empty. Strict, as RFC 3629: overlong forms, surrogates and values
// above U+10FFFF are not valid.
CodePoint FirstCodePoint(absl::string_view text);

// Appends the UTF-8 form of a valid code point.
void AppendUtf8(std::int32_t code_point, std::string& out);

namespace internal {

struct UnicodeRange {
  std::int32_t first, last;  // both included
  UnicodeClass kind;
};
// Ascending, disjoint.
extern const UnicodeRange kUnicodeRanges[];
extern const int kUnicodeRangeCount;

}  // namespace internal
}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_UNICODE_CLASS_H_
