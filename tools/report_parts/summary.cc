#include "tools/report_parts/summary.h"

#include <algorithm>
#include <cmath>

namespace plait::report {
namespace {

// Quantile q of all values, which lies in values[first, last). Requires that the values before the range are at most,
// and those after it at least, as large as those in it; afterwards the same holds for both sides of `place`.
double Select(std::vector<double>& values, std::size_t first, std::size_t last, double q,
              std::size_t* place) {
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const auto begin = values.begin();
  *place = low;
  std::nth_element(begin + first, begin + low, begin + last);
  const double below = values[low];
  if (low + 1 >= values.size() || at == static_cast<double>(low)) return below;
  // The next larger value may be just after the range.
  const double above = *std::min_element(begin + low + 1, begin + std::max(last, low + 2));
  return below + (above - below) * (at - static_cast<double>(low));
}

void CountAndCompact(std::vector<double>& column, Summary& summary) {
  summary.draws = column.size();
  std::size_t kept = 0;
  constexpr double kMostExact = 0x1p53;
  bool whole = true;
  long double sum = 0;
  for (std::size_t i = 0; i < column.size(); ++i) {
    const double value = column[i];
    if (std::isnan(value)) {
      ++summary.nan;
      continue;
    }
    if (summary.first_place < 0) summary.first_place = i;
    summary.last_place = i;
    summary.last = value;
    if (std::isinf(value)) {
      ++(value > 0 ? summary.positive_infinities : summary.negative_infinities);
      continue;
    }
    sum += value;
    whole = whole && value == std::nearbyint(value) && std::abs(value) <= kMostExact;
    column[kept++] = value;
  }
  column.resize(kept);
  summary.finite = kept;
  summary.whole = whole && kept > 0;
  if (kept > 0) summary.mean = static_cast<double>(sum / static_cast<long double>(kept));
}

std::vector<double> BlockMedians(const std::vector<double>& values) {
  const std::size_t blocks = std::min<std::size_t>(kBlocks, values.size());
  std::vector<double> medians, block;
  for (std::size_t i = 0; i < blocks; ++i) {
    block.assign(values.begin() + values.size() * i / blocks,
                 values.begin() + values.size() * (i + 1) / blocks);
    medians.push_back(Quantile(block, 0.5));
  }
  return medians;
}

}  // namespace

double Quantile(std::vector<double>& values, double q) {
  if (values.empty()) return kNaN;
  std::size_t place = 0;
  return Select(values, 0, values.size(), q, &place);
}

Summary Summarize(std::vector<double> column) {
  Summary summary;
  CountAndCompact(column, summary);
  if (column.empty()) return summary;
  summary.block_medians = BlockMedians(column);
  // From the median outwards: each selection works within a part that an earlier one split off.
  const std::size_t end = column.size();
  std::size_t middle, p10, p90;
  summary.median = Select(column, 0, end, 0.5, &middle);
  summary.p10 = Select(column, 0, middle + 1, 0.1, &p10);
  summary.p90 = Select(column, middle, end, 0.9, &p90);
  summary.min = *std::min_element(column.begin(), column.begin() + p10 + 1);
  summary.max = *std::max_element(column.begin() + p90, column.end());
  return summary;
}

}  // namespace plait::report
