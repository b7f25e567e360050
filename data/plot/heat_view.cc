#include "data/plot/heat_view.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "base/status_macros.h"

namespace plait::data {
namespace {

constexpr double kEmpty = std::numeric_limits<double>::quiet_NaN();

// Neighbours [begin, end) along x or among rows, one cell.
struct Range {
  std::size_t begin, end;
};

struct Cells {
  std::vector<Range> rows, columns;
  std::vector<double> means = {};  // (row, column)
};

absl::Status Check(const HeatMap& map) {
  const std::size_t count = map.x.size();
  if (count == 0 ? !map.values.empty() : map.values.size() % count != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "heat map %s: %d values for %d of x, expected whole rows", map.name, map.values.size(), count));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isfinite(map.x[i]) && (i == 0 || map.x[i] > map.x[i - 1])) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "heat map %s: x[%d] is %g, expected finite ascending numbers", map.name, i, map.x[i]));
  }
  return absl::OkStatus();
}

// From half a cell before the first x to half a cell after the last one.
Axis XAxisOf(const std::vector<double>& x) {
  if (x.empty()) return {};
  const std::size_t last = x.size() - 1;
  const double before = last == 0 ? 0.5 : (x[1] - x[0]) / 2,
               after = last == 0 ? 0.5 : (x[last] - x[last - 1]) / 2;
  Axis axis = {x[0] - before, x[last] + after};
  axis.whole = std::all_of(x.begin(), x.end(), [](double value) { return value == std::round(value); });
  return axis;
}

// As many columns as give equally spaced x one each.
std::size_t ColumnCount(const std::vector<double>& x, const Axis& axis, std::size_t most) {
  if (x.empty()) return 0;
  double least = axis.high - axis.low;
  for (std::size_t i = 1; i < x.size(); ++i) least = std::min(least, x[i] - x[i - 1]);
  const double wanted = std::round((axis.high - axis.low) / least);
  return wanted < static_cast<double>(most) ? static_cast<std::size_t>(wanted)
                                            : std::max<std::size_t>(1, most);
}

std::vector<Range> ColumnRanges(const std::vector<double>& x, const Axis& axis, std::size_t columns) {
  std::vector<Range> ranges;
  std::size_t next = 0;
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t begin = next;
    const auto width = static_cast<double>(columns);
    while (next < x.size() &&
           (axis.Position(x[next]) * width < static_cast<double>(column + 1) || column + 1 == columns)) {
      ++next;
    }
    if (next > begin) {
      ranges.push_back({begin, next});
      continue;
    }
    const double centre = axis.low + (static_cast<double>(column) + 0.5) / width * (axis.high - axis.low);
    const bool left = begin > 0 && (begin == x.size() || centre - x[begin - 1] <= x[begin] - centre);
    const std::size_t nearest = left ? begin - 1 : begin;
    ranges.push_back({nearest, nearest + 1});
  }
  return ranges;
}

std::vector<Range> RowRanges(std::size_t rows, std::size_t most) {
  const std::size_t count = std::min(rows, std::max<std::size_t>(1, most));
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < count; ++i) ranges.push_back({i * rows / count, (i + 1) * rows / count});
  return ranges;
}

// Of the finite values; NaN if there are none.
double MeanOf(const HeatMap& map, const Range& rows, const Range& columns) {
  double sum = 0;
  std::int64_t count = 0;
  for (std::size_t row = rows.begin; row < rows.end; ++row) {
    for (std::size_t i = columns.begin; i < columns.end; ++i) {
      const double value = map.values[row * map.x.size() + i];
      if (!std::isfinite(value)) continue;
      sum += value;
      ++count;
    }
  }
  return count == 0 ? kEmpty : sum / static_cast<double>(count);
}

std::string Place(const HeatMap& map, std::size_t row, std::size_t i) {
  return absl::StrCat(map.x_label, " ", absl::StrFormat("%.10g", map.x[i]), ", ",
                      map.y_label.empty() ? "row" : map.y_label, " ", row);
}

// "12 of 640 values are NaN, the first at step 3, expert 0".
template <typename Is>
void NoteLeftOut(const HeatMap& map, const char* what, const Is& is, std::vector<std::string>& notes) {
  std::int64_t count = 0;
  std::string first;
  const std::size_t rows = RowsOf(map);
  for (std::size_t i = 0; i < map.x.size(); ++i) {
    for (std::size_t row = 0; row < rows; ++row) {
      if (is(map.values[row * map.x.size() + i]) && count++ == 0) first = Place(map, row, i);
    }
  }
  if (count == 0) return;
  notes.push_back(absl::StrCat(base::FormatCount(count), " of ", base::FormatCount(map.values.size()),
                               map.values.size() == 1 ? " value" : " values", count == 1 ? " is " : " are ",
                               what, count == 1 ? ", at " : ", the first at ", first));
}

// "3 of 640 cells are above 2.1 ms; the largest is 247 ms at step 99, expert 3".
void NoteOutside(const HeatMap& map, const Cells& cells, bool above, HeatView& view) {
  const std::vector<double>& means = cells.means;
  std::int64_t count = 0;
  std::size_t extreme = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (!(above ? means[i] > view.value.high : means[i] < view.value.low)) continue;
    if (count++ == 0 || (above ? means[i] > means[extreme] : means[i] < means[extreme])) extreme = i;
  }
  if (count == 0) return;
  const auto number = [&](double value) { return base::FormatQuantity(value, map.unit); };
  view.notes.push_back(absl::StrCat(
      base::FormatCount(count), " of ", base::FormatCount(means.size()),
      count == 1 ? " cells is " : " cells are ", above ? "above " : "below ",
      number(above ? view.value.high : view.value.low),
      count == 1 ? ": "
      : above    ? "; the largest is "
                 : "; the smallest is ",
      number(means[extreme]), " at ",
      Place(map, cells.rows[extreme / view.columns].begin, cells.columns[extreme % view.columns].begin)));
}

std::size_t Largest(const std::vector<Range>& ranges) {
  std::size_t largest = 1;
  for (const Range& range : ranges) largest = std::max(largest, range.end - range.begin);
  return largest;
}

// "each cell: the mean of up to 17 along step by 4 along expert".
void NoteMeans(const HeatMap& map, const Cells& cells, std::vector<std::string>& notes) {
  std::string along;
  const auto add = [&](std::size_t values, const std::string& label) {
    if (values < 2) return;
    absl::StrAppend(&along, along.empty() ? "" : " by ", base::FormatCount(values), " along ", label);
  };
  add(Largest(cells.columns), map.x_label);
  add(Largest(cells.rows), map.y_label.empty() ? "rows" : map.y_label);
  if (!along.empty()) notes.push_back(absl::StrCat("each cell: the mean of up to ", along));
}

}  // namespace

std::size_t RowsOf(const HeatMap& map) { return map.x.empty() ? 0 : map.values.size() / map.x.size(); }

absl::StatusOr<HeatView> HeatViewOf(const HeatMap& map, std::size_t most_columns, std::size_t most_rows) {
  PLAIT_RETURN_IF_ERROR(Check(map));
  HeatView view = {.x = XAxisOf(map.x)};
  const double count = std::max(1.0, static_cast<double>(RowsOf(map)));
  view.y = {.low = -0.5, .high = count - 0.5, .whole = true};
  Cells cells = {.rows = RowRanges(RowsOf(map), most_rows),
                 .columns = ColumnRanges(map.x, view.x, ColumnCount(map.x, view.x, most_columns))};
  for (const Range& row : cells.rows) {
    for (const Range& column : cells.columns) cells.means.push_back(MeanOf(map, row, column));
  }
  view.value = AxisFor({&cells.means}, false, map.robust ? AxisRange::kRobust : AxisRange::kWithMargin);
  view.value.unit = map.unit;
  if (cells.means.empty()) {
    view.notes.emplace_back("no values");
    return view;
  }
  view.rows = cells.rows.size();
  view.columns = cells.columns.size();
  for (const double mean : cells.means) {
    view.cells.push_back(std::isnan(mean) ? kEmpty : std::clamp(view.value.Position(mean), 0.0, 1.0));
  }
  for (const bool above : {true, false}) NoteOutside(map, cells, above, view);
  NoteLeftOut(
      map, "NaN", [](double value) { return std::isnan(value); }, view.notes);
  NoteLeftOut(
      map, "infinite", [](double value) { return std::isinf(value); }, view.notes);
  NoteMeans(map, cells, view.notes);
  return view;
}

}  // namespace plait::data
