// model.safetensors.index.json: no name of a file leads out of its folder, and what is written again is the same.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "data/safetensors/shard_index.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace st = plait::data::safetensors;
  const auto index = st::ParseShardIndex(plait::fuzz::TextOf(data, size));
  if (!index.ok()) return 0;
  for (const auto& [tensor, file] : index->files) PLAIT_CHECK(file.find('/') == std::string::npos) << file;
  const auto again = st::ParseShardIndex(st::IndexText(*index));
  PLAIT_CHECK(again.ok() && again->files == index->files && again->total_bytes == index->total_bytes);
  return 0;
}
