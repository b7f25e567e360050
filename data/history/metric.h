// The metrics of a history: numbers or small vectors per draw.
#ifndef PLAIT_DATA_HISTORY_METRIC_H_
#define PLAIT_DATA_HISTORY_METRIC_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plait::data {

// The longest vector; longer ones belong in separate files.
inline constexpr std::int64_t kLongestVector = 1 << 16;

struct Metric {
  std::string name;            // letters, digits, _ - + . after a letter or _; "draw" is taken
  std::string units = "";      // as UDUNITS and CF write them: "s", "1", "bytes"
  std::string long_name = "";  // "time of a step"
  std::string statistic = "";  // "mean over ranks"; empty for a plain value

  // A vector has `length` > 0 and shape (draw, dimension); the dimension may be shared by vectors of the same length
  // and has a coordinate of its name, 0 ... length - 1. Empty: NAME_index. A scalar has length 0.
  std::string dimension = "";
  std::int64_t length = 0;

  // Stored as int64 in the file; values must be whole numbers of magnitude at most 2^53, or NaN: missing.
  bool integer = false;
};

// An integer metric without unit, for counters: Count("step", "steps done").
inline Metric Count(std::string name, std::string long_name) {
  return {.name = std::move(name), .units = "1", .long_name = std::move(long_name), .integer = true};
}

// Whether `value` is a whole number of magnitude at most 2^53, the range in which a double represents all of them.
bool IsWhole(double value);

struct Scalar {
  absl::string_view name;
  double value;
};

// Does not own its values: a braced list lives only until the end of the call that it is passed to.
struct Vector {
  absl::string_view name;
  absl::Span<const double> values;
};

// One draw, as passed to the sinks; the views are valid during that call only.
struct Draw {
  std::int64_t draw = 0;
  double unix_seconds = 0;
  absl::Span<const Scalar> scalars = {};
  absl::Span<const Vector> vectors = {};
};

// InvalidArgument unless `name` is allowed as the name of a metric or dimension.
absl::Status CheckMetricName(absl::string_view name);

// The dimension of a vector, by default NAME_index; empty for a number.
std::string DimensionOf(const Metric& metric);

// How many numbers a metric has per draw.
inline std::int64_t NumbersOf(const Metric& metric) { return metric.length == 0 ? 1 : metric.length; }

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_METRIC_H_
