#include "data/safetensors/shards.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace plait::data::safetensors {
namespace {

bool IsCount(absl::string_view text) {
  return text.size() >= 5 && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

}  // namespace

absl::StatusOr<std::vector<Shard>> CutIntoShards(absl::Span<const TensorView> tensors,
                                                 std::int64_t max_shard_bytes) {
  std::vector<Shard> shards = {{}};
  std::int64_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const absl::StatusOr<std::int64_t> bytes = ByteCount(tensors[i].info);
    PLAIT_RETURN_IF_ERROR(base::Prefixed(bytes.status(), absl::StrCat("tensor ", Quoted(tensors[i].name))));
    if (__builtin_add_overflow(total, *bytes, &total)) {
      return absl::InvalidArgumentError("the tensors have more than 2^63 - 1 bytes together");
    }
    if (shards.back().count > 0 && *bytes > max_shard_bytes - shards.back().bytes)
      shards.push_back({.first = i});
    shards.back().count += 1;
    shards.back().bytes += *bytes;
  }
  return shards;
}

std::string ShardName(std::size_t index, std::size_t shards) {
  if (shards == 1) return kModelFile;
  return absl::StrFormat("model-%05d-of-%05d.safetensors", index + 1, shards);
}

bool IsShardName(absl::string_view file) {
  if (!absl::ConsumePrefix(&file, "model-") || !absl::ConsumeSuffix(&file, ".safetensors")) return false;
  const std::vector<absl::string_view> counts = absl::StrSplit(file, "-of-");
  return counts.size() == 2 && IsCount(counts[0]) && IsCount(counts[1]);
}

}  // namespace plait::data::safetensors
