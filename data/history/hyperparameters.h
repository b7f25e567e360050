// The settings of a run, one by one, from the line that a history keeps of them (attribute `settings`).
#ifndef PLAIT_DATA_HISTORY_HYPERPARAMETERS_H_
#define PLAIT_DATA_HISTORY_HYPERPARAMETERS_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace plait::data {

// {"batch-size", "64"}, {"quiet", "true"} of "--batch-size=64 --quiet" (also "--batch-size 64"), and
// {"batch_size", "64"}, {"quiet", "true"}, {"layers", "8,4"} of "Namespace(batch_size=64, quiet=True,
// layers='8,4')". What is neither is left out.
std::map<std::string, std::string> HyperparametersOf(absl::string_view settings);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_HYPERPARAMETERS_H_
