// One of the text files of UCI HAR beside sound others: the first byte says which.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "data/har/text.h"
#include "tests/fuzz/memory_file.h"

namespace {

std::string SoundLine() {
  std::string line;
  for (int i = 0; i < plait::data::kHarSteps; ++i) line += " 1";
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto& files = *new std::vector<std::string>(plait::data::HarTextFiles("har"));
  static const std::string& signal = *new std::string(SoundLine());
  if (size == 0) return 0;
  const std::string& changed = files[data[0] % 11];
  const auto split = plait::data::ReadHarSplit("har", "train", [&](const std::string& path) -> std::string {
    if (path == changed) return std::string(plait::fuzz::TextOf(data + 1, size - 1));
    return path.find("Inertial") == std::string::npos ? "1" : signal;
  });
  if (split.ok()) {
    PLAIT_CHECK(split->samples() == std::ssize(split->subject));
    PLAIT_CHECK(split->samples() * split->steps * split->channels == std::ssize(split->x));
  }
  return 0;
}
