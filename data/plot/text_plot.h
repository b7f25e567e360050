// A plot as text: curves in block characters, with axes, labels, legend and notes. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_TEXT_PLOT_H_
#define PLAIT_DATA_PLOT_TEXT_PLOT_H_

#include <string>

#include "data/plot/plot.h"
#include "data/plot/view.h"

namespace plait::data {

// Each line ends in a newline and has at most `style.columns` characters.
std::string TextPlot(const Plot& plot, const View& view, const TextStyle& style);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_TEXT_PLOT_H_
