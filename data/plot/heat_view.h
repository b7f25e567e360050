// What a heat map shows: cells, colour axis and notes. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_HEAT_VIEW_H_
#define PLAIT_DATA_PLOT_HEAT_VIEW_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/plot/axis.h"
#include "data/plot/plot.h"

namespace plait::data {

// The values of the map, averaged if there are more of them than cells.
struct HeatView {
  Axis x = {}, y = {};  // rows are 0, 1, ... on y; a cell extends half way to its neighbours
  Axis value = {};
  std::size_t columns = 0, rows = 0;
  std::vector<double> cells = {};  // (row, column): position on `value`, 0 to 1; NaN: empty
  std::vector<std::string> notes = {};
};

// Returns a view of at most `most_columns` by `most_rows` cells, at least one. All columns are equally wide; a column
// that contains no x has the values of the nearest x. INVALID_ARGUMENT: x is not finite and strictly ascending, or the
// values are not whole rows.
absl::StatusOr<HeatView> HeatViewOf(const HeatMap& map, std::size_t most_columns, std::size_t most_rows);

// Number of rows of the map.
std::size_t RowsOf(const HeatMap& map);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_HEAT_VIEW_H_
