#include "data/trace/json_text.h"

#include "absl/strings/str_cat.h"

namespace plait::data {
namespace {

// The length of the UTF-8 character at the start of `text`, 0 if there is none. RFC 3629, section 4.
std::size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is above U+10FFFF.
  const unsigned char second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) {
    return 0;
  }
  return length;
}

void AppendAscii(char character, std::string& out) {
  switch (character) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      if (static_cast<unsigned char>(character) >= 0x20 && character != 0x7f) {
        out.push_back(character);
      } else {
        absl::StrAppend(&out, "\\u00", absl::Hex(static_cast<unsigned char>(character), absl::kZeroPad2));
      }
  }
}

}  // namespace

std::string JsonText(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    if (length == 0) out += "\\ufffd";
    if (length == 1) AppendAscii(text[0], out);
    if (length > 1) out.append(text.data(), length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out.push_back('"');
  return out;
}

}  // namespace plait::data
