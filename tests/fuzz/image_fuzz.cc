// JPEG and PNG.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "data/images/decode.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto image = plait::data::DecodeImage(plait::fuzz::TextOf(data, size));
  if (image.ok()) {
    PLAIT_CHECK(std::ssize(image->pixels) == std::int64_t{3} * image->rows * image->columns);
  }
  return 0;
}
