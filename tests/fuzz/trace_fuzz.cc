// A Chrome trace, of any program, as tools:report reads it.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/memory_file.h"
#include "tools/report_parts/step_timeline.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plait::fuzz::MemoryFile file(plait::fuzz::TextOf(data, size));
  plait::report::MedianStep(file.path()).status().IgnoreError();
  return 0;
}
