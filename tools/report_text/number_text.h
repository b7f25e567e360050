// Numbers as people read them.
#ifndef PLAIT_TOOLS_REPORT_TEXT_NUMBER_TEXT_H_
#define PLAIT_TOOLS_REPORT_TEXT_NUMBER_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace plait::report {

// Four digits with a unit that suits the size: ("s") 0.00154 -> "1.54 ms"; ("bytes") 3350528 -> "3.195 MiB".
// Other units stand in the table's own column, so they are not added: 2152.4 -> "2152", 41234.5 -> "41,230".
// "-" for NaN, "inf". Microseconds are written with a Greek letter.
std::string Shown(double value, absl::string_view units = "");

// "12,345".
std::string Count(std::int64_t value);

// 0.123 -> "12.3 %"; "-" for NaN.
std::string Percent(double share);

// A ratio on three digits: "0.52"; "-" for NaN.
std::string Times(double ratio);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_TEXT_NUMBER_TEXT_H_
