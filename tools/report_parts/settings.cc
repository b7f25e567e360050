#include "tools/report_parts/settings.h"

#include <algorithm>
#include <set>

namespace plait::report {
namespace {

// Differ in any two runs, or follow from settings that are shown.
bool IsIncidental(const std::string& name) {
  static const std::set<std::string>& names = *new std::set<std::string>{
      "command",  "started", "trace", "launch_command", "folder",      "history", "report",  "complete",
      "finished", "outputs", "csv",   "json_lines",     "tensorboard", "html",    "settings"};
  return names.count(name) > 0;
}

const std::string* Find(const NamedTexts& settings, const std::string& name) {
  for (const auto& [known, value] : settings) {
    if (known == name) return &value;
  }
  return nullptr;
}

}  // namespace

NamedTexts SettingsOf(const NamedTexts& attributes) {
  NamedTexts settings;
  for (const auto& [name, value] : attributes) {
    if (name != "settings") data::PutSetting(settings, name, value);
  }
  for (const auto& [name, value] : attributes) {
    if (name != "settings") continue;
    for (auto& [setting, given] : data::ParseSettings(value))
      data::PutSetting(settings, std::move(setting), std::move(given));
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
