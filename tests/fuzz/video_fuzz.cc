// Video files, of which a clip takes two small frames.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "data/video/read_video.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plait::fuzz::MemoryFile file(plait::fuzz::TextOf(data, size));
  const auto clip = plait::data::ReadVideo(file.path(), {.frames = 2, .step = 1, .size = 8});
  if (clip.ok()) PLAIT_CHECK(std::ssize(clip->pixels) == clip->frames * 8 * 8 * 3);
  return 0;
}
