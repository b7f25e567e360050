// Settings of runs, and what changed from one run to another.
//
//   ParseSettings("Namespace(lr=0.1, hosts=['a', 'b'], data='x y')")   // lr: 0.1, hosts: ['a', 'b'], data: x
//   y ParseSettings("--lr=0.1 --dtype bf16 --compile")                   // lr: 0.1, dtype: bf16, compile:
//   true
#ifndef PLAIT_TOOLS_REPORT_NUMBERS_SETTINGS_H_
#define PLAIT_TOOLS_REPORT_NUMBERS_SETTINGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace plait::report {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Names and values of a line of settings: name=value pairs, separated by commas or blanks, as Python's
// Namespace and as flags. Dashes before a name go, within it they become underscores; quotes around a value
// go. What is no setting is left out.
NamedTexts ParseSettings(const std::string& line);

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

#endif  // PLAIT_TOOLS_REPORT_NUMBERS_SETTINGS_H_
