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

// Most text is ASCII; the search is for the rest.
constexpr int kAsciiEnd = 128;

std::array<UnicodeClass, kAsciiEnd> AsciiClasses() {
  std::array<UnicodeClass, kAsciiEnd> classes;
  for (int c = 0; c < kAsciiEnd; ++c) classes[c] = Search(c);
  return classes;
}

bool IsContinuation(std::uint8_t byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

UnicodeClass ClassOf(std::int32_t code_point) {
  static const std::array<UnicodeClass, kAsciiEnd> ascii = AsciiClasses();
  if (code_point < 0) return UnicodeClass::kOther;
  return code_point < kAsciiEnd ? ascii[code_point] : Search(code_point);
}

CodePoint FirstCodePoint(absl::string_view text) {
  constexpr CodePoint kInvalid{-1, 1};
  const std::uint8_t lead = text[0];
  if (lead < 0x80) return {lead, 1};
  // C0, C1 and F5 to FF begin no sequence; the others below F8 say by their leading ones how long it is.
  if (lead < 0xC2 || lead > 0xF4) return kInvalid;
  const std::int32_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < static_cast<std::size_t>(bytes)) return kInvalid;
  std::int32_t value = lead & (0x7F >> bytes);
  for (std::int32_t i = 1; i < bytes; ++i) {
    const std::uint8_t byte = text[i];
    if (!IsContinuation(byte)) return kInvalid;
    value = value << 6 | (byte & 0x3F);
  }
  constexpr std::int32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[bytes] || value > 0x10FFFF || surrogate) return kInvalid;
  return {value, bytes};
}

void AppendUtf8(std::int32_t code_point, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0 | code_point >> 6);
    tail(0);
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0 | code_point >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | code_point >> 18);
    tail(12), tail(6), tail(0);
  }
}

}  // namespace plait::data
