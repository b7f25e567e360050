#include "data/history/hyperparameters.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace plait::data {
namespace {

// At commas outside quotes and brackets.
std::vector<std::string> SplitArguments(absl::string_view text) {
  std::vector<std::string> arguments(1);
  char quote = '\0';
  int depth = 0;
  for (const char c : text) {
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '(') {
      ++depth;
    } else if (c == ']' || c == ')') {
      --depth;
    } else if (c == ',' && depth == 0) {
      arguments.emplace_back();
      continue;
    }
    arguments.back().push_back(c);
  }
  return arguments;
}

std::string PlainValue(absl::string_view text) {
  if (text == "True" || text == "False") return absl::AsciiStrToLower(text);
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

std::map<std::string, std::string> OfNamespace(absl::string_view arguments) {
  std::map<std::string, std::string> found;
  for (const std::string& argument : SplitArguments(arguments)) {
    const std::pair<std::string, std::string> setting = absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const std::string name(absl::StripAsciiWhitespace(setting.first));
    if (absl::StrContains(argument, "=") && !name.empty()) {
      found[name] = PlainValue(absl::StripAsciiWhitespace(setting.second));
    }
  }
  return found;
}

std::map<std::string, std::string> OfFlags(absl::string_view settings) {
  std::map<std::string, std::string> found;
  const std::vector<std::string> words = absl::StrSplit(settings, ' ', absl::SkipEmpty());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!absl::StartsWith(words[i], "--")) continue;
    const std::size_t equals = words[i].find('=');
    const bool value_follows = i + 1 < words.size() && !absl::StartsWith(words[i + 1], "--");
    const std::string name = words[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    found[name] = equals != std::string::npos ? words[i].substr(equals + 1)
                  : value_follows             ? words[i + 1]
                                              : "true";
  }
  return found;
}

}  // namespace

std::map<std::string, std::string> HyperparametersOf(absl::string_view settings) {
  if (!absl::ConsumePrefix(&settings, "Namespace(")) return OfFlags(settings);
  absl::ConsumeSuffix(&settings, ")");
  return OfNamespace(settings);
}

}  // namespace plait::data
