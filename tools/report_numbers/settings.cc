#include "tools/report_numbers/settings.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace plait::report {
namespace {

// Differ in any two runs, or follow from settings that are shown.
bool IsIncidental(const std::string& name) {
  static const std::set<std::string>& names = *new std::set<std::string>{
      "command",  "started", "trace", "launch_command", "folder",      "history", "report",  "complete",
      "finished", "outputs", "csv",   "json_lines",     "tensorboard", "html",    "settings"};
  return names.count(name) > 0;
}

// Cuts at commas and blanks that are neither in quotes nor in brackets.
std::vector<std::string> Words(absl::string_view line) {
  std::vector<std::string> words(1);
  int depth = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == quote && line[i - 1] != '\\') quote = '\0';
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

std::string Unquoted(absl::string_view text) {
  if (text.size() >= 2 && (text[0] == '\'' || text[0] == '"') && text.back() == text[0]) {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

bool IsFlag(const std::string& word) { return absl::StartsWith(word, "-") && word.size() > 1; }

std::string SettingName(absl::string_view word) {
  while (absl::ConsumePrefix(&word, "-")) {
  }
  return absl::StrReplaceAll(word, {{"-", "_"}});
}

void Put(NamedTexts& settings, std::string name, std::string value) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const auto& known) { return known.first == name; });
  if (found == settings.end()) {
    settings.emplace_back(std::move(name), std::move(value));
  } else {
    found->second = std::move(value);
  }
}

const std::string* Find(const NamedTexts& settings, const std::string& name) {
  for (const auto& [known, value] : settings) {
    if (known == name) return &value;
  }
  return nullptr;
}

}  // namespace

NamedTexts ParseSettings(const std::string& line) {
  absl::string_view text = line;
  if (absl::ConsumePrefix(&text, "Namespace(")) absl::ConsumeSuffix(&text, ")");
  const std::vector<std::string> words = Words(text);
  NamedTexts settings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals != std::string::npos) {
      const std::string name = SettingName(words[i].substr(0, equals));
      if (!name.empty()) Put(settings, name, Unquoted(words[i].substr(equals + 1)));
    } else if (IsFlag(words[i])) {
      const bool has_value = i + 1 < words.size() && !absl::StartsWith(words[i + 1], "--") &&
                             words[i + 1].find('=') == std::string::npos;
      const std::string name = SettingName(words[i]);
      if (name.empty()) continue;
      Put(settings, name, has_value ? Unquoted(words[++i]) : "true");
    }
  }
  return settings;
}

NamedTexts SettingsOf(const NamedTexts& attributes) {
  NamedTexts settings;
  for (const auto& [name, value] : attributes) {
    if (name != "settings") Put(settings, name, value);
  }
  for (const auto& [name, value] : attributes) {
    if (name != "settings") continue;
    for (auto& [setting, given] : ParseSettings(value)) Put(settings, std::move(setting), std::move(given));
  }
  return settings;
}

std::vector<ChangedSetting> ChangedSettings(absl::Span<const NamedTexts> runs) {
  std::vector<ChangedSetting> changed;
  std::set<std::string> seen;
  for (const NamedTexts& run : runs) {
    for (const auto& [name, value] : run) {
      if (IsIncidental(name) || !seen.insert(name).second) continue;
      ChangedSetting setting = {name, {}};
      for (const NamedTexts& other : runs) {
        const std::string* found = Find(other, name);
        setting.values.push_back(found == nullptr ? "-" : *found);
      }
      const bool same = std::all_of(setting.values.begin(), setting.values.end(),
                                    [&](const std::string& text) { return text == setting.values[0]; });
      if (!same) changed.push_back(std::move(setting));
    }
  }
  return changed;
}

}  // namespace plait::report
