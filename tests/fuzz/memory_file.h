// Bytes as a file with a path, in memory (memfd): input for readers of files.
#ifndef PLAIT_TESTS_FUZZ_MEMORY_FILE_H_
#define PLAIT_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"

namespace plait::fuzz {

inline absl::string_view TextOf(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    PLAIT_CHECK(descriptor_ >= 0) << "no memory file";
    PLAIT_CHECK(write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Valid while this object lives; other processes may read it too.
  std::string path() const { return absl::StrCat("/proc/", getpid(), "/fd/", descriptor_); }

 private:
  int descriptor_;
};

}  // namespace plait::fuzz

#endif  // PLAIT_TESTS_FUZZ_MEMORY_FILE_H_
