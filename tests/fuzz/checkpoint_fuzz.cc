// The index of a checkpoint: its JSON, a NUL, a byte for the columns of the table of pieces, one for its length, then 64-bit
// numbers, of pieces first. What is taken has its pieces inside its files.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "base/check.h"
#include "parallel/checkpoint/index_file.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes = plait::fuzz::TextOf(data, size);
  const std::size_t end = std::min(bytes.find('\0'), size);
  absl::string_view rest = bytes.substr(std::min(end + 1, size));
  plait::parallel::PieceTables tables;
  if (rest.size() >= 2) {
    tables.columns = rest[0] % 2 == 0 ? 4 : 5;
    std::vector<std::int64_t> numbers((rest.size() - 2) / sizeof(std::int64_t));
    if (!numbers.empty()) std::memcpy(numbers.data(), rest.data() + 2, numbers.size() * sizeof(std::int64_t));
    const std::size_t pieces = std::min<std::size_t>(static_cast<std::uint8_t>(rest[1]), numbers.size());
    tables.pieces.assign(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(pieces));
    tables.boxes.assign(numbers.begin() + static_cast<std::ptrdiff_t>(pieces), numbers.end());
  }
  const auto index = plait::parallel::ParseIndex(std::string(bytes.substr(0, end)), tables);
  if (!index.ok()) return 0;
  absl::int128 held = 0;
  for (const plait::parallel::ShardSummary& shard : index->shards) held += shard.bytes;
  PLAIT_CHECK(index->layout.TotalBytes() <= held);
  return 0;
}
