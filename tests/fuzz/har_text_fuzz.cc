// One of the text files of UCI HAR beside sound others: the first byte says which.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "data/har/text.h"
#include "tests/fuzz/memory_file.h"

namespace {

namespace fs = std::filesystem;

std::string Sound(const std::string& path) {
  if (path.find("Inertial") == std::string::npos) return "1\n";
  std::string line;
  for (int i = 0; i < plait::data::kHarSteps; ++i) line += " 0.5";
  return line + "\n";
}

void Write(const std::string& path, absl::string_view text) { std::ofstream(path, std::ios::binary) << text; }

// Folders and sound files.
std::string MakeFolder() {
  const char* given = std::getenv("TEST_TMPDIR");
  std::string folder = std::string(given == nullptr ? "/tmp" : given) + "/har_text_fuzz_XXXXXX";
  PLAIT_CHECK(mkdtemp(folder.data()) != nullptr);
  for (const std::string& path : plait::data::HarTextFiles(folder)) {
    fs::create_directories(fs::path(path).parent_path());
    Write(path, Sound(path));
  }
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string& folder = *new std::string(MakeFolder());
  if (size == 0) return 0;
  const std::string path = plait::data::HarTextFiles(folder)[data[0] % 11];
  Write(path, plait::fuzz::TextOf(data + 1, size - 1));
  const auto set = plait::data::ReadHarText(folder);
  if (set.ok()) PLAIT_CHECK(set->train.samples() == std::ssize(set->train.y));
  Write(path, Sound(path));
  return 0;
}
