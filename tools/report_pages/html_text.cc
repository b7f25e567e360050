#include "tools/report_pages/html_text.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::report {
namespace {

// Length of the UTF-8 character at the beginning of `text`; 0 where there is none (RFC 3629, table 3-7 of the
// Unicode standard).
std::size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool out_of_range = (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) >= 0x90);
    return continues(1) && continues(2) && continues(3) && !out_of_range ? 4 : 0;
  }
  return 0;
}

void AppendAscii(char c, std::string& html) {
  switch (c) {
    case '&':
      html += "&amp;";
      return;
    case '<':
      html += "&lt;";
      return;
    case '>':
      html += "&gt;";
      return;
    case '"':
      html += "&quot;";
      return;
    case '\'':
      html += "&#39;";
      return;
    default:
      if (c == '\t' || c == '\n' || (c >= 0x20 && c != 0x7F)) html += c;
  }
}

}  // namespace

std::string Html(absl::string_view text) {
  std::string html;
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    if (length == 1) {
      AppendAscii(text[0], html);
    } else if (length == 0) {
      html += "\xEF\xBF\xBD";
    } else {
      absl::StrAppend(&html, text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return html;
}

std::string Decimal(double value) {
  std::string text = absl::StrFormat("%.2f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace plait::report
