// The file of recordings. Its checksum is made right, so that the reader sees the rest.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "data/har/recordings.h"
#include "data/hdf5/checked_array.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHeader = 56, kChecksum = 48;
  std::string bytes(plait::fuzz::TextOf(data, size));
  if (size >= kHeader) {
    const std::uint32_t crc =
        plait::data::Crc32(&bytes[0] + kHeader, static_cast<std::int64_t>(size - kHeader));
    std::memcpy(&bytes[kChecksum], &crc, sizeof(crc));
  }
  const plait::fuzz::MemoryFile file(bytes);
  const auto recordings = plait::data::ReadRecordings(file.path());
  if (recordings.ok()) plait::data::WindowsOf(*recordings);
  return 0;
}
