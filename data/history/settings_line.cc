#include "data/history/settings_line.h"

#include <cstddef>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace plait::data {
namespace {

// Cuts at commas and blanks that are neither in quotes nor in brackets.
std::vector<std::string> Words(absl::string_view line) {
  std::vector<std::string> words(1);
  int depth = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0' && c == '\\' && i + 1 < line.size()) {
      words.back() += c;
      words.back() += line[++i];
      continue;
    }
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (depth <= 0 && (c == ',' || c == ' ')) {
      // A comma within --layers=1,2 belongs to the value; one before a blank or at the end separates.
      const bool in_value = c == ',' && i + 1 < line.size() && line[i + 1] != ' ';
      if (!in_value) {
        if (!words.back().empty()) words.emplace_back();
        continue;
      }
    }
    words.back() += c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Undoes Python's quotes and escapes of quotes, backslashes and ends of lines.
std::string Unquoted(absl::string_view text) {
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0])
    return std::string(text);
  text = text.substr(1, text.size() - 2);
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '\\' && i + 1 < text.size() && absl::StrContains("\\'\"n", text.substr(i + 1, 1));
    if (escape) ++i;
    plain += escape && text[i] == 'n' ? '\n' : text[i];
  }
  return plain;
}

bool IsFlag(const std::string& word) { return absl::StartsWith(word, "-") && word.size() > 1; }

std::string SettingName(absl::string_view word) {
  while (absl::ConsumePrefix(&word, "-")) {
  }
  return absl::StrReplaceAll(word, {{"-", "_"}});
}

}  // namespace

NamedTexts LastValues(const NamedTexts& settings) {
  NamedTexts unique;
  std::map<std::string, std::size_t> places;
  for (const auto& [name, value] : settings) {
    const auto [known, is_new] = places.emplace(name, unique.size());
    if (is_new) unique.emplace_back(name, "");
    unique[known->second].second = value;
  }
  return unique;
}

NamedTexts ParseSettings(const std::string& line) {
  absl::string_view text = line;
  if (absl::ConsumePrefix(&text, "Namespace(")) absl::ConsumeSuffix(&text, ")");
  const std::vector<std::string> words = Words(text);
  NamedTexts settings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals != std::string::npos) {
      const std::string name = SettingName(words[i].substr(0, equals));
      if (!name.empty()) settings.emplace_back(name, Unquoted(words[i].substr(equals + 1)));
    } else if (IsFlag(words[i])) {
      const bool has_value = i + 1 < words.size() && !absl::StartsWith(words[i + 1], "--") &&
                             words[i + 1].find('=') == std::string::npos;
      const std::string name = SettingName(words[i]);
      if (name.empty()) continue;
      settings.emplace_back(name, has_value ? Unquoted(words[++i]) : "true");
    }
  }
  return LastValues(settings);
}

}  // namespace plait::data
