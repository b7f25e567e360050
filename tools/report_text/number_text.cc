#include "tools/report_text/number_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::report {
namespace {

struct Prefix {
  double size;
  const char* unit;
};

constexpr Prefix kSeconds[] = {{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}};
constexpr Prefix kBytes[] = {
    {0x1p40, " TiB"}, {0x1p30, " GiB"}, {0x1p20, " MiB"}, {0x1p10, " KiB"}, {1, " B"}};

// The largest unit of which there is at least one; of less than the smallest unit, that one.
template <std::size_t n>
std::string Scaled(double value, const Prefix (&prefixes)[n]) {
  for (const Prefix& prefix : prefixes) {
    // 0.9999995 s is 1 s on four digits, too.
    if (std::abs(value) >= prefix.size * 0.99995 || &prefix == &prefixes[n - 1]) {
      return absl::StrFormat("%.4g%s", value / prefix.size, prefix.unit);
    }
  }
  return "";
}

// On four digits, whole below a million in full; from ten thousand on in groups: 41234.5 is "41,230".
std::string Plain(double value) {
  const double size = std::abs(value);
  const bool whole = value == std::round(value) && size < 1e6;
  if (size < 1e4 || size >= 1e9) {
    return whole ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.4g", value);
  }
  const double unit = std::pow(10, std::floor(std::log10(size)) - 3);
  return Count(std::llround(whole ? value : std::round(value / unit) * unit));
}

}  // namespace

std::string Shown(double value, absl::string_view units) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const bool seconds = units == "s", bytes = units == "bytes";
  if (value == 0) return seconds ? "0 s" : bytes ? "0 B" : "0";
  if (seconds) return Scaled(value, kSeconds);
  if (bytes) return Scaled(value, kBytes);
  return Plain(value);
}

std::string Count(std::int64_t value) {
  std::string digits = absl::StrCat(value);
  const int first = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) digits.insert(at, 1, ',');
  return digits;
}

std::string Percent(double share) {
  return std::isfinite(share) ? absl::StrFormat("%.1f %%", 100 * share) : "-";
}

std::string Times(double ratio) { return std::isfinite(ratio) ? absl::StrFormat("%.3g", ratio) : "-"; }

}  // namespace plait::report
