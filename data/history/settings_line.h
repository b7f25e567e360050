// The settings of a run, one by one, from the line that a history keeps of them (attribute `settings`).
//
//   ParseSettings("Namespace(lr=0.1, hosts=['a', 'b'], data='x y')");  // lr: 0.1, hosts: ['a', 'b'], data: x
//   y ParseSettings("--lr=0.1 --layer-sizes 8,4 --compile");             // lr: 0.1, layer_sizes: 8,4,
//   compile: true
#ifndef PLAIT_DATA_HISTORY_SETTINGS_LINE_H_
#define PLAIT_DATA_HISTORY_SETTINGS_LINE_H_

#include <string>
#include <utility>
#include <vector>

namespace plait::data {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Names and values, in their order: name=value pairs, separated by commas or blanks, as Python's Namespace
// and as flags. Dashes before a name go, within it they become underscores; quotes around a value go. Of a
// name that comes twice the last value counts. What is no setting is left out.
NamedTexts ParseSettings(const std::string& line);

// Sets or adds.
void PutSetting(NamedTexts& settings, std::string name, std::string value);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_SETTINGS_LINE_H_
