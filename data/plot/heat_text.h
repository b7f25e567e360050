// A heat map as text: each row is a line of bars, or of colours. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_HEAT_TEXT_H_
#define PLAIT_DATA_PLOT_HEAT_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/plot/plot.h"

namespace plait::data {

// Each line ends in a newline and has at most `style.columns` characters. Errors of HeatViewOf.
absl::StatusOr<std::string> HeatText(const HeatMap& map, const TextStyle& style);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_HEAT_TEXT_H_
