// The classes of characters that tokenizers tell apart.
//
// The table is Plait's own (Unicode 16.0, unicode_ranges.cc, made by make_unicode_ranges.py), not that of the
// system's ICU: the same text must give the same tokens on every machine, or a checkpoint no longer matches
// the data it was trained on.
#ifndef PLAIT_DATA_TEXT_UNICODE_CLASS_H_
#define PLAIT_DATA_TEXT_UNICODE_CLASS_H_

#include <cstdint>

namespace plait::data {

enum class UnicodeClass : std::uint8_t {
  kOther,   // all else, unassigned characters and bytes that are not UTF-8 too
  kLetter,  // general category L: \p{L} of regular expressions
  kNumber,  // general category N: \p{N}
  kSpace,   // property White_Space: \s
};

// kOther for a negative value.
UnicodeClass ClassOf(std::int32_t code_point);

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
