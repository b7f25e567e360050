// The journal of a history: records whose checksums are made right. Each begins with a byte for its length.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "data/hdf5/checked_array.h"
#include "data/history/journal.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes = "PLTJRNL2";
  absl::string_view rest = plait::fuzz::TextOf(data, size);
  while (!rest.empty()) {
    const absl::string_view record = rest.substr(1, static_cast<std::uint8_t>(rest[0]));
    rest.remove_prefix(1 + record.size());
    const std::uint32_t prefix[] = {
        static_cast<std::uint32_t>(record.size()),
        plait::data::Crc32(record.data(), static_cast<std::int64_t>(record.size()))};
    bytes.append(reinterpret_cast<const char*>(prefix), sizeof(prefix)).append(record.data(), record.size());
  }
  const plait::fuzz::MemoryFile file(bytes);
  plait::data::JournalReader journal(file.path());
  for (plait::data::JournalDraw draw; journal.Next(draw);) {
    std::size_t numbers = 0;
    for (const std::uint32_t id : draw.ids) numbers += plait::data::NumbersOf(journal.metrics().at(id));
    PLAIT_CHECK(numbers == draw.numbers.size() && draw.draw >= 0);
  }
  return 0;
}
