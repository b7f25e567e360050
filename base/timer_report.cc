#include "base/timer_report.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::base {
namespace {

constexpr std::size_t kNameWidth = 30;
constexpr std::size_t kNumberWidth = 16;
constexpr std::size_t kRuleWidth = 54;

// An odd blank goes to the right.
std::string Centred(const std::string& text, std::size_t width) {
  if (text.size() >= width) return text;
  const std::size_t left = (width - text.size()) / 2;
  return absl::StrCat(std::string(left, ' '), text, std::string(width - text.size() - left, ' '));
}

std::string Number(const std::string& text) { return absl::StrCat(" ", Centred(text, kNumberWidth), " |"); }

std::string Seconds(double seconds) { return Number(absl::StrFormat("%.4e", seconds)); }

}  // namespace

std::string TimerTable(const TimerSet& timers, int rank) {
  std::size_t width = kNameWidth;
  for (const auto& [name, timer] : timers.timers()) {
    if (timer.count() > 0) width = std::max(width, name.size());
  }
  std::string table = absl::StrFormat("\n   *** Proc = %-8d ***\n", rank);
  absl::StrAppend(&table, "  ", Centred("timer", width), " ||", Number("count"), Number("total"),
                  Number("mean"), Number("stdev"), "\n", std::string(kRuleWidth, '='), "\n");
  for (const auto& [name, timer] : timers.timers()) {
    if (timer.count() == 0) continue;
    absl::StrAppend(&table, "  ", name, std::string(width - name.size(), ' '), " ||",
                    Number(absl::StrCat(timer.count())), Seconds(timer.total_seconds()),
                    Seconds(timer.mean_seconds()), Seconds(timer.stdev_seconds()), "\n");
  }
  return table;
}

}  // namespace plait::base
