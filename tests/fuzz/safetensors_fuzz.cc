// A file of tensors: what its header names must lie inside it.
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "data/safetensors/file.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace st = plait::data::safetensors;
  const plait::fuzz::MemoryFile memory(plait::fuzz::TextOf(data, size));
  const auto file = st::File::Open(memory.path());
  if (!file.ok()) return 0;
  std::size_t bytes = 0;
  for (const st::Header::Entry& entry : file->entries()) {
    const auto tensor = file->Find(entry.name);
    PLAIT_CHECK_OK(tensor.status());
    const auto* begin = static_cast<const std::uint8_t*>(tensor->data);
    const volatile int sum = std::accumulate(begin, begin + *st::ByteCount(tensor->info), 0);
    static_cast<void>(sum);
    bytes += *st::ByteCount(tensor->info);
  }
  PLAIT_CHECK(bytes < size);
  return 0;
}
