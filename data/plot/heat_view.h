// What a heat map shows: cells of its rows over x, colours' axis and notes. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_HEAT_VIEW_H_
#define PLAIT_DATA_PLOT_HEAT_VIEW_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/plot/axis.h"
#include "data/plot/plot.h"

namespace plait::data {

// The numbers of the map, averaged where there are more of them than cells.
struct HeatView {
  Axis x = {}, y = {};  // rows are 0, 1, ... on y; a cell reaches half way to its neighbours
  Axis value = {};
  std::size_t columns = 0, rows = 0;
  std::vector<double> cells = {};  // (row, column): position on `value`, 0 to 1; NaN: empty
  std::vector<std::string> notes = {};
};

// At most so many columns and rows of cells, at least one. All columns are equally wide; without an x within, a
// column has the numbers of the nearest x. INVALID_ARGUMENT: x is not finite and ascending, or the numbers are
// not whole rows.
absl::StatusOr<HeatView> HeatViewOf(const HeatMap& map, std::size_t most_columns, std::size_t most_rows);

// 0: none.
std::size_t RowsOf(const HeatMap& map);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_HEAT_VIEW_H_
