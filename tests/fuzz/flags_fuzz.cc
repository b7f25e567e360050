// The value of a flag of every type; one that is shown and read again is the same.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/flags.h"
#include "tests/fuzz/memory_file.h"

namespace {

using plait::base::BoundFlag;

template <typename T>
void Try(const std::string& text) {
  T value = {}, again = {};
  BoundFlag flag = {.name = "flag", .value = &value, .help = ""};
  if (!plait::base::SetFromText(flag, text).ok()) return;
  BoundFlag second = {.name = "flag", .value = &again, .help = ""};
  const std::string shown = plait::base::ValueText(flag.value);
  PLAIT_CHECK_OK(plait::base::SetFromText(second, shown));
  PLAIT_CHECK(value == again || value != value) << shown;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(plait::fuzz::TextOf(data, size));
  Try<bool>(text);
  Try<int>(text);
  Try<std::int64_t>(text);
  Try<std::uint64_t>(text);
  Try<double>(text);
  Try<std::vector<int>>(text);
  return 0;
}
