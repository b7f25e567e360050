// For the largest of several errors: std::max and std::fmax ignore NaN, so that a test would pass.
//
//   largest = std::max(largest, base::NanIsInfinite(std::abs(value - expected)));
#ifndef PLAIT_BASE_TESTING_NAN_IS_INFINITE_H_
#define PLAIT_BASE_TESTING_NAN_IS_INFINITE_H_

#include <cmath>
#include <limits>

namespace plait::base {

inline double NanIsInfinite(double error) {
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

}  // namespace plait::base

#endif  // PLAIT_BASE_TESTING_NAN_IS_INFINITE_H_
