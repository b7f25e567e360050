// Numbers with units, for people to read.
#ifndef PLAIT_BASE_QUANTITY_H_
#define PLAIT_BASE_QUANTITY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace plait::base {

struct Unit {
  double size;
  absl::string_view suffix;  // " ms", " MiB"; empty for units other than "s" and "bytes"
};

// The largest multiple of `unit` ("s" or "bytes") that is at most `value`, or the smallest multiple.
Unit UnitFor(double value, absl::string_view unit);

// Four digits: (0.00154, "s") is "1.54 ms", (3350528, "bytes") "3.195 MiB". Other units are not added: 2152.4
// is "2152", 41234.5 "41,230". "-" for NaN, "inf". Microseconds are written with a Greek letter.
std::string FormatQuantity(double value, absl::string_view unit = "");

// "12,345".
std::string FormatCount(std::int64_t value);

// 0.123 is "12.3 %"; "-" if not finite.
std::string FormatPercent(double fraction);

// Three digits: "0.52"; "-" if not finite.
std::string FormatRatio(double ratio);

// printf's exponents without padding: "1e+06" becomes "1e6", "1e-06" "1e-6".
std::string ShortExponent(absl::string_view number);

}  // namespace plait::base

#endif  // PLAIT_BASE_QUANTITY_H_
