// Median and extremes of a few samples.
#ifndef PLAIT_TESTS_BENCHMARKS_SPREAD_H_
#define PLAIT_TESTS_BENCHMARKS_SPREAD_H_

#include <algorithm>
#include <vector>

namespace plait::benchmarks {

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

// Of at least one sample.
inline Spread SpreadOf(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  const double median = samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
  return {median, samples.front(), samples.back()};
}

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_SPREAD_H_
