// The settings of a run, one by one, from the line that a history keeps of them (attribute `settings`).
//
//   ParseSettings("Namespace(lr=0.1, hosts=['a', 'b'], data='x y')");
//       // lr: 0.1, hosts: ['a', 'b'], data: x y
//   ParseSettings("--lr=0.1 --layer-sizes 8,4 --compile");
//       // lr: 0.1, layer_sizes: 8,4, compile: true
#ifndef PLAIT_DATA_HISTORY_SETTINGS_LINE_H_
#define PLAIT_DATA_HISTORY_SETTINGS_LINE_H_

#include <string>
#include <utility>
#include <vector>

namespace plait::data {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Returns names and values in order, from Python's Namespace(...) or from flags: name=value pairs separated by a
// space or a comma and a space, "--name value", or "--name" ("true"). Leading dashes and quotes around values are
// removed, other dashes in names become underscores. A repeated name keeps its first place and last value. Other
// words are skipped.
NamedTexts ParseSettings(const std::string& line);

// Each name once, at its first place and with its last value.
NamedTexts LastValues(const NamedTexts& settings);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_SETTINGS_LINE_H_
