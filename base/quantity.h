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

// The largest of s, ms, µs, ns ("s") or TiB, GiB, MiB, KiB, B ("bytes") that is not above |value|, else the smallest.
// For any other `unit`, size 1 and no suffix.
Unit UnitFor(double value, absl::string_view unit);

// Four significant digits: (0.00154, "s") is "1.54 ms", (3350528, "bytes") "3.195 MiB". Any other unit is not printed:
// 2152.4 is "2152", 41234.5 "41,230"; integers below a million keep all digits. "-" for NaN; "inf", "-inf".
// Microseconds are "µs" in UTF-8 (AsciiOnly() in text.h makes that "us").
std::string FormatQuantity(double value, absl::string_view unit = "");

// "12,345".
std::string FormatCount(std::int64_t value);

// 0.123 is "12.3 %"; "-" if not finite.
std::string FormatPercent(double fraction);

// Three significant digits: "0.52"; "-" if not finite.
std::string FormatRatio(double ratio);

// printf's exponents without padding: "1e+06" becomes "1e6", "1e-06" "1e-6".
std::string ShortExponent(absl::string_view number);

}  // namespace plait::base

#endif  // PLAIT_BASE_QUANTITY_H_
