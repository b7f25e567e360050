// Images in IDX files, packed or not: as many pixels as the header says.
#include <cstddef>
#include <cstdint>

#include "data/idx/idx.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plait::fuzz::MemoryFile file(plait::fuzz::TextOf(data, size));
  const auto images = plait::data::ReadIdxImages(file.path());
  if (images.ok()) {
    PLAIT_CHECK(static_cast<std::int64_t>(images->pixels.size()) ==
                images->samples * images->rows * images->columns);
  }
  plait::data::ReadIdxLabels(file.path()).status().IgnoreError();
  return 0;
}
