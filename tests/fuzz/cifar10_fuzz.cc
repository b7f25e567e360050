// CIFAR-10's records, packed or not: an image for each record. The bytes are also the names of the classes.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/images/cifar10.h"
#include "tests/fuzz/memory_file.h"

namespace {

constexpr const char* kFiles[] = {"data_batch_1.bin", "test_batch.bin", "batches.meta.txt"};

// A folder of three links to one file in memory, whose contents each input replaces.
class LinkedFolder {
 public:
  LinkedFolder() : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    PLAIT_CHECK(descriptor_ >= 0 && mkdtemp(path_.data()) != nullptr) << "no folder";
    const std::string file = absl::StrCat("/proc/", getpid(), "/fd/", descriptor_);
    for (const char* name : kFiles) {
      PLAIT_CHECK(symlink(file.c_str(), absl::StrCat(path_, "/", name).c_str()) == 0) << name;
    }
  }
  ~LinkedFolder() {
    for (const char* name : kFiles) unlink(absl::StrCat(path_, "/", name).c_str());
    rmdir(path_.c_str());
    close(descriptor_);
  }
  LinkedFolder(const LinkedFolder&) = delete;
  LinkedFolder& operator=(const LinkedFolder&) = delete;

  void Fill(absl::string_view bytes) const {
    PLAIT_CHECK(ftruncate(descriptor_, 0) == 0);
    PLAIT_CHECK(pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_ = "/tmp/plait-fuzz-XXXXXX";
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const LinkedFolder folder;
  folder.Fill(plait::fuzz::TextOf(data, size));
  const auto sets = plait::data::ReadCifar10(folder.path());
  if (!sets.ok()) return 0;
  PLAIT_CHECK(sets->train->samples() > 0 && sets->train->samples() == sets->test->samples());
  for (std::int64_t i = 0; i < sets->train->samples(); ++i) {
    const auto image = sets->train->Read(i);
    PLAIT_CHECK(image.ok() && image->pixels.size() == std::size_t{3} * 32 * 32) << i;
    PLAIT_CHECK(sets->train->label(i) >= 0 && sets->train->label(i) < 10) << i;
  }
  return 0;
}
