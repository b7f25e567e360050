// A flag file; settings written as flags and read again are the same, and an error is one line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/flags.h"
#include "tests/fuzz/memory_file.h"

namespace {

using plait::base::BoundFlag;

struct Settings {
  bool truth = false;
  std::int64_t count = 0;
  double number = 0;
  std::string text;
  std::vector<int> list = {1};

  std::vector<BoundFlag> Flags() {
    return {{"truth", &truth, ""},
            {"count", &count, ""},
            {"number", &number, ""},
            {"a_text", &text, "", "old_text"},
            {"list", &list, ""}};
  }

  absl::Status Read(absl::string_view lines) {
    const plait::fuzz::MemoryFile file(lines);
    std::vector<BoundFlag> flags = Flags();
    return plait::base::ParseFlags({"--flagfile=" + file.path()},
                                   {.name = "fuzz", .summary = "", .bound = &flags})
        .status();
  }

  std::string Lines() {
    std::string lines;
    for (const BoundFlag& flag : Flags()) absl::StrAppend(&lines, plait::base::FlagLine(flag), "\n");
    return lines;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Settings settings, again;
  const absl::Status status = settings.Read(plait::fuzz::TextOf(data, size));
  if (!status.ok()) {
    PLAIT_CHECK(absl::StartsWith(status.message(), "--flagfile=/proc/") &&
                !absl::StrContains(status.message(), '\n'))
        << status.message();
    return 0;
  }
  const std::string lines = settings.Lines();
  PLAIT_CHECK_OK(again.Read(lines));
  PLAIT_CHECK(again.Lines() == lines && again.text == settings.text) << lines;
  return 0;
}
