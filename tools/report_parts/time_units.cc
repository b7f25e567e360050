#include "tools/report_parts/time_units.h"

#include <initializer_list>

#include "absl/strings/strip.h"

namespace plait::report {
namespace {

struct TimeUnit {
  double seconds;
  std::initializer_list<absl::string_view> names;
};

}  // namespace

double SecondsIn(absl::string_view units) {
  // The micro sign and the Greek letter.
  static const TimeUnit kUnits[] = {{1, {"s", "sec", "second", "seconds"}},
                                    {1e-3, {"ms", "msec", "millisecond", "milliseconds"}},
                                    {1e-6, {"us", "µs", "μs", "usec", "microsecond", "microseconds"}},
                                    {1e-9, {"ns", "nsec", "nanosecond", "nanoseconds"}},
                                    {60, {"min", "minute", "minutes"}},
                                    {3600, {"h", "hr", "hour", "hours"}}};
  for (const TimeUnit& unit : kUnits) {
    for (const absl::string_view name : unit.names) {
      if (units == name) return unit.seconds;
    }
  }
  return 0;
}

absl::string_view PlainName(const data::TableMetric& metric) {
  absl::string_view name = metric.name;
  if (!absl::ConsumePrefix(&name, "train_")) absl::ConsumePrefix(&name, "train/");
  absl::ConsumeSuffix(&name, "_per_rank");
  return name;
}

double SecondsPerUnit(const data::TableMetric& metric) {
  if (!metric.units.empty()) return SecondsIn(metric.units);
  for (const char* time : {"dt", "dtf", "dtb", "dto", "step_time"}) {
    if (PlainName(metric) == time) return 1;
  }
  return 0;
}

double FactorBetween(const data::TableMetric& from, const data::TableMetric& to) {
  const double from_seconds = SecondsPerUnit(from), to_seconds = SecondsPerUnit(to);
  if (from.units == to.units || (from_seconds > 0 && from_seconds == to_seconds)) return 1;
  if (from_seconds > 0 && to_seconds > 0) return from_seconds / to_seconds;
  if (from_seconds > 0 || to_seconds > 0) return 0;
  return from.units.empty() || to.units.empty() ? 1 : 0;
}

}  // namespace plait::report
