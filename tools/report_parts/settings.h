// What changed in the settings from one run to another.
#ifndef PLAIT_TOOLS_REPORT_PARTS_SETTINGS_H_
#define PLAIT_TOOLS_REPORT_PARTS_SETTINGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "data/history/settings_line.h"

namespace plait::report {

using data::NamedTexts;

// A run's attributes, with the line in attribute `settings` taken apart.
NamedTexts SettingsOf(const NamedTexts& attributes);

struct ChangedSetting {
  std::string name;
  std::vector<std::string> values;  // by run; "-" where a run does not have it
};

// Settings that are not the same in all runs, in the order of the first run that has them. What differs from
// run to run anyway (when it started, its command, its other files) is left out.
std::vector<ChangedSetting> ChangedSettings(absl::Span<const NamedTexts> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_SETTINGS_H_
