#include "parallel/checkpoint/walltime.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace plait::parallel {

double ProcessStartSeconds() {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::ifstream file("/proc/self/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The name, field 2, stands in parentheses and may have blanks; field 3 follows the last one.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text.size()) return now;
  const std::vector<std::string> fields = absl::StrSplit(text.substr(name_end + 2), ' ');
  double ticks = 0;
  timespec since_boot{};
  if (fields.size() < 20 || !absl::SimpleAtod(fields[19], &ticks) ||
      clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0)
    return now;
  const double boot_age =
      static_cast<double>(since_boot.tv_sec) + 1e-9 * static_cast<double>(since_boot.tv_nsec);
  return now - std::max(0.0, boot_age - ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

std::optional<double> JobEndSeconds(double start_seconds, double limit_seconds,
                                    const EnvironmentLookup& lookup) {
  std::optional<double> end;
  const auto take = [&](double seconds) { end = end ? std::min(*end, seconds) : seconds; };
  const auto take_variable = [&](const char* name, double since) {
    const char* text = lookup(name);
    double seconds = 0;
    if (text != nullptr && absl::SimpleAtod(text, &seconds) && seconds > 0) take(since + seconds);
  };
  if (limit_seconds > 0) take(start_seconds + limit_seconds);
  take_variable("SLURM_JOB_END_TIME", 0);
  take_variable("COBALT_ENDTIME", 0);
  take_variable("PBS_WALLTIME", start_seconds);
  return end;
}

}  // namespace plait::parallel
