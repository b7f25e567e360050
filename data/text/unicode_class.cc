#include "data/text/unicode_class.h"

#include <algorithm>
#include <array>

namespace plait::data {
namespace {

UnicodeClass Search(std::int32_t code_point) {
  const internal::UnicodeRange* begin = internal::kUnicodeRanges;
  const internal::UnicodeRange* end = begin + internal::kUnicodeRangeCount;
  const auto* after = std::upper_bound(
      begin, end, code_point,
      [](std::int32_t value, const internal::UnicodeRange& range) { return value < range.first; });
  if (after == begin || code_point > (after - 1)->last) return UnicodeClass::kOther;
  return (after - 1)->kind;
}

// A lookup table for ASCII, as most text is; the search is for the rest.
constexpr int kAsciiEnd = 128;

std::array<UnicodeClass, kAsciiEnd> AsciiClasses() {
  std::array<UnicodeClass, kAsciiEnd> classes;
  for (int c = 0; c < kAsciiEnd; ++c) classes[c] = Search(c);
  return classes;
}

}  // namespace

UnicodeClass ClassOf(std::int32_t code_point) {
  static const std::array<UnicodeClass, kAsciiEnd> ascii = AsciiClasses();
  if (code_point < 0) return UnicodeClass::kOther;
  return code_point < kAsciiEnd ? ascii[code_point] : Search(code_point);
}

}  // namespace plait::data
