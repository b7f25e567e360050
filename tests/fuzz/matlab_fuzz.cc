// MATLAB's files of version 5: as many numbers as the shape says.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "data/matlab/matlab.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes = plait::fuzz::TextOf(data, size);
  // Those of version 7.3 are hdf5_fuzz's.
  if (bytes.substr(0, 4) == "\x89HDF" || (size > 512 && bytes.substr(512, 4) == "\x89HDF")) return 0;
  const plait::fuzz::MemoryFile file(bytes);
  for (const char* name : {"", "x", "a"}) {
    const auto array = plait::data::ReadMatlabArray(file.path(), name);
    if (!array.ok()) continue;
    const auto count =
        std::accumulate(array->shape.begin(), array->shape.end(), std::int64_t{1}, std::multiplies<>());
    PLAIT_CHECK(count == static_cast<std::int64_t>(array->values.size())) << count;
  }
  return 0;
}
