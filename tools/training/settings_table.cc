#include "tools/training/settings_table.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace plait::training {
namespace {

constexpr char kGiven[] = "given";

std::string Dashed(const std::string& name) { return absl::StrReplaceAll(name, {{"_", "-"}}); }

}  // namespace

void SettingsTable::Group(const std::string& title) { groups_.push_back({title, {}}); }

void SettingsTable::Add(const std::string& name, base::BoundFlag::Value value, const std::string& help,
                        OnResume on_resume, const std::string& old_name) {
  flags_.push_back({.name = name, .value = value, .help = help, .old_name = old_name});
  on_resume_.push_back(on_resume);
  defaults_.push_back(base::ValueText(value));
  groups_.back().flags.push_back(name);
}

base::ToolUsage SettingsTable::Usage(const std::string& program, const std::string& summary,
                                     const std::vector<std::string>& examples) {
  return {.name = program, .summary = summary, .examples = examples, .groups = groups_, .bound = &flags_};
}

absl::Status SettingsTable::SetDefault(const std::string& name, const std::string& text) {
  const auto flag = std::find_if(flags_.begin(), flags_.end(), [&](const auto& f) { return f.name == name; });
  PLAIT_CHECK(flag != flags_.end()) << "no flag " << name;
  chosen_.insert(name);
  if (flag->given) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(base::SetFromText(*flag, text));
  defaults_[static_cast<std::size_t>(flag - flags_.begin())] = base::ValueText(flag->value);
  return absl::OkStatus();
}

absl::Status SettingsTable::SetImplied(const std::string& name, const std::string& text) {
  PLAIT_RETURN_IF_ERROR(SetDefault(name, text));
  std::find_if(flags_.begin(), flags_.end(), [&](const auto& f) { return f.name == name; })->given = true;
  return absl::OkStatus();
}

bool SettingsTable::Given(const std::string& name) const {
  return std::any_of(flags_.begin(), flags_.end(),
                     [&](const base::BoundFlag& flag) { return flag.name == name && flag.given; });
}

absl::Status SettingsTable::CheckUnchanged(const NamedValues& before) const {
  for (const base::BoundFlag& flag : flags_) {
    const std::string now = base::ValueText(flag.value);
    if (!flag.given || before.at(flag.name) == now) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", Dashed(flag.name), "=", before.at(flag.name),
                                                   ": expected ", now, ", or leave it out"));
  }
  return absl::OkStatus();
}

absl::Status SettingsTable::CheckNoneGiven(const std::string& prefix, const std::string& used) const {
  for (const base::BoundFlag& flag : flags_) {
    if (!flag.given || !absl::StartsWith(flag.name, prefix)) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", Dashed(flag.name), ": expected ", used));
  }
  return absl::OkStatus();
}

std::string SettingsTable::FlagFile(const std::vector<std::string>& places,
                                    const std::vector<std::string>& derived) const {
  std::string lines;
  for (std::size_t i = 0; i < flags_.size(); ++i) {
    const bool given = flags_[i].given || given_before_.contains(flags_[i].name);
    if (!given && base::ValueText(flags_[i].value) == defaults_[i]) continue;
    if (!flags_[i].given && std::count(derived.begin(), derived.end(), flags_[i].name) > 0) continue;
    const bool is_place = std::count(places.begin(), places.end(), flags_[i].name) > 0;
    absl::StrAppend(&lines, is_place ? "# " : "", base::FlagLine(flags_[i]), "\n");
  }
  return lines;
}

NamedValues SettingsTable::Values() const {
  NamedValues values;
  for (const base::BoundFlag& flag : flags_) values[flag.name] = base::ValueText(flag.value);
  return values;
}

NamedValues SettingsTable::Kept() const {
  NamedValues kept;
  std::set<std::string> given = given_before_;
  for (std::size_t i = 0; i < flags_.size(); ++i) {
    if (on_resume_[i] == OnResume::kFree || unknown_.contains(i)) continue;
    kept[flags_[i].name] = base::ValueText(flags_[i].value);
    if (flags_[i].given && chosen_.contains(flags_[i].name)) given.insert(flags_[i].name);
  }
  kept[kGiven] = absl::StrJoin(given, ",");
  return kept;
}

absl::Status SettingsTable::AdoptOne(std::size_t index, const NamedValues& kept,
                                     std::vector<std::string>* changes) {
  base::BoundFlag& flag = flags_[index];
  const auto found = kept.find(flag.name);
  if (on_resume_[index] == OnResume::kFree || found == kept.end()) return absl::OkStatus();
  const std::string here = base::ValueText(flag.value);
  if (here == found->second) return absl::OkStatus();
  if (!flag.given) return base::SetFromText(flag, found->second);
  if (on_resume_[index] != OnResume::kAdopt) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag.name, " is ", found->second, " there and ", here, " here"));
  }
  changes->push_back(absl::StrCat(flag.name, " ", found->second, " -> ", here));
  return absl::OkStatus();
}

absl::Status SettingsTable::Adopt(const NamedValues& kept, std::vector<std::string>* changes) {
  for (std::size_t i = 0; i < flags_.size(); ++i) PLAIT_RETURN_IF_ERROR(AdoptOne(i, kept, changes));
  if (const auto given = kept.find(kGiven); given != kept.end()) {
    given_before_ = absl::StrSplit(given->second, ',', absl::SkipEmpty());
  }
  return absl::OkStatus();
}

absl::Status SettingsTable::AdoptPresets(const NamedValues& kept) {
  for (std::size_t i = 0; i < flags_.size(); ++i) {
    if (on_resume_[i] != OnResume::kPreset) continue;
    if (!flags_[i].given && !kept.contains(flags_[i].name)) unknown_.insert(i);
    PLAIT_RETURN_IF_ERROR(AdoptOne(i, kept, nullptr));
  }
  return absl::OkStatus();
}

}  // namespace plait::training
