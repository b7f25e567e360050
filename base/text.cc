#include "base/text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace plait::base {
namespace {

bool IsContinuation(char c) { return (static_cast<std::uint8_t>(c) & 0xC0) == 0x80; }

}  // namespace

CodePoint FirstCodePoint(absl::string_view text) {
  constexpr CodePoint kInvalid{-1, 1};
  const std::uint8_t lead = text[0];
  if (lead < 0x80) return {lead, 1};
  // C0, C1 and F5 to FF begin no sequence; the leading ones of the others give its length.
  if (lead < 0xC2 || lead > 0xF4) return kInvalid;
  const std::int32_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < static_cast<std::size_t>(bytes)) return kInvalid;
  std::int32_t value = lead & (0x7F >> bytes);
  for (std::int32_t i = 1; i < bytes; ++i) {
    if (!IsContinuation(text[i])) return kInvalid;
    value = value << 6 | (static_cast<std::uint8_t>(text[i]) & 0x3F);
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

std::string ValidUtf8(absl::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const CodePoint point = FirstCodePoint(text);
    absl::StrAppend(&valid, point.value < 0 ? "\uFFFD" : text.substr(0, point.bytes));
    text.remove_prefix(point.bytes);
  }
  return valid;
}

std::string Printable(absl::string_view text, absl::string_view invalid, absl::string_view control) {
  std::string printable;
  while (!text.empty()) {
    const CodePoint point = FirstCodePoint(text);
    // C0, DEL and C1, of which U+009B starts escape sequences as ESC [ does.
    const bool is_control =
        (point.value >= 0 && point.value < 0x20) || (point.value >= 0x7F && point.value < 0xA0);
    absl::StrAppend(&printable, point.value < 0 ? invalid
                                : is_control    ? control
                                                : text.substr(0, point.bytes));
    text.remove_prefix(point.bytes);
  }
  return printable;
}

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(
      Printable(text, "\uFFFD"),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string AsciiOnly(absl::string_view text) {
  std::string ascii;
  for (; !text.empty(); text.remove_prefix(FirstCodePoint(text).bytes)) {
    const bool kept = text[0] == '\n' || absl::ascii_isprint(text[0]);
    ascii += kept ? text[0] : FirstCodePoint(text).value == 0xB5 ? 'u' : '?';
  }
  return ascii;
}

int TextWidth(absl::string_view text) {
  return static_cast<int>(text.size() - std::count_if(text.begin(), text.end(), IsContinuation));
}

absl::string_view TextPrefix(absl::string_view text, int columns) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!IsContinuation(text[i]) && columns-- == 0) return text.substr(0, i);
  }
  return text;
}

std::string ShellCommand(const std::vector<std::string>& words) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  return absl::StrJoin(words, " ", [&](std::string* out, const std::string& word) {
    const bool plain = !word.empty() && absl::string_view(word).find_first_not_of(kPlain) == word.npos;
    absl::StrAppend(out, plain ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'"));
  });
}

std::vector<std::string> WrapText(absl::string_view text, int columns, int indent) {
  std::vector<std::string> lines = {""};
  const std::string start(indent, ' ');
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const bool fits = TextWidth(lines.back()) + 1 + TextWidth(word) <= columns;
    if (lines.back().size() > (lines.size() > 1 ? start.size() : 0)) {
      if (fits) {
        lines.back() += ' ';
      } else {
        lines.push_back(start);
      }
    }
    while (TextWidth(lines.back()) + TextWidth(word) > columns) {
      const absl::string_view part = TextPrefix(word, columns - TextWidth(lines.back()));
      absl::StrAppend(&lines.back(), part);
      word.remove_prefix(part.size());
      lines.push_back(start);
    }
    absl::StrAppend(&lines.back(), word);
  }
  return lines;
}

}  // namespace plait::base
