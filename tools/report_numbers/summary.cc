#include "tools/report_numbers/summary.h"

#include <algorithm>
#include <cmath>

#include "absl/types/span.h"

namespace plait::report {
namespace {

constexpr std::size_t kFewValues = 20;

// Of values[first, last), when everything before is at most and everything after at least as large as those.
// Afterwards the range is split likewise at the place of the quantile, which is returned by `place`.
double Select(std::vector<double>& values, std::size_t first, std::size_t last, double q,
              std::size_t* place) {
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const auto begin = values.begin();
  *place = low;
  std::nth_element(begin + first, begin + low, begin + last);
  const double below = values[low];
  if (low + 1 >= values.size() || at == static_cast<double>(low)) return below;
  // Of two values the upper one is behind the range.
  const double above = *std::min_element(begin + low + 1, begin + std::max(last, low + 2));
  return below + (above - below) * (at - static_cast<double>(low));
}

void CountAndCompact(std::vector<double>& column, Summary& summary) {
  summary.draws = column.size();
  std::size_t kept = 0;
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
    column[kept++] = value;
  }
  column.resize(kept);
  summary.finite = kept;
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

// What lies below column[low] and above column[high], which are in their places.
void SetTails(const std::vector<double>& column, std::size_t low, std::size_t high, Summary& summary) {
  summary.core_low = column[low];
  summary.core_high = column[high];
  for (std::size_t i = 0; i < low; ++i) {
    if (column[i] < summary.core_low) summary.below.push_back(column[i]);
  }
  for (std::size_t i = high + 1; i < column.size(); ++i) {
    if (column[i] > summary.core_high) summary.above.push_back(column[i]);
  }
  std::sort(summary.below.begin(), summary.below.end());
  std::sort(summary.above.begin(), summary.above.end());
  summary.min = summary.below.empty() ? summary.core_low : summary.below.front();
  summary.max = summary.above.empty() ? summary.core_high : summary.above.back();
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
  // From the middle outwards, each selection within what the one before has set apart.
  const std::size_t end = column.size();
  std::size_t middle, p10, p90;
  summary.median = Select(column, 0, end, 0.5, &middle);
  summary.p10 = Select(column, 0, middle + 1, 0.1, &p10);
  summary.p90 = Select(column, middle, end, 0.9, &p90);
  const double last = static_cast<double>(end - 1);
  const auto low = end < kFewValues ? 0 : static_cast<std::size_t>(std::ceil(0.01 * last));
  const auto high = end < kFewValues ? end - 1 : static_cast<std::size_t>(0.99 * last);
  if (end < kFewValues) {
    std::sort(column.begin(), column.end());
  } else {
    std::nth_element(column.begin(), column.begin() + low, column.begin() + p10 + 1);
    std::nth_element(column.begin() + p90, column.begin() + high, column.end());
  }
  SetTails(column, low, high, summary);
  return summary;
}

}  // namespace plait::report
