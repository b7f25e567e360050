// model.safetensors.index.json: which shard holds which tensor; and how a model is split into shards.
//
//   PLAIT_ASSIGN_OR_RETURN(const ShardIndex index, ReadShardIndex("gpt2/model.safetensors.index.json"));
//   index.files.at("wte.weight");  // "model-00001-of-00003.safetensors"
#ifndef PLAIT_DATA_SAFETENSORS_SHARD_INDEX_H_
#define PLAIT_DATA_SAFETENSORS_SHARD_INDEX_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/safetensors/tensor.h"

namespace plait::data::safetensors {

struct ShardIndex {
  std::optional<std::int64_t> total_bytes;
  std::map<std::string, std::string> files;  // tensor -> file beside the index
};

// DataLoss, in a message without a path: not JSON, no weight_map, a duplicate name, a file that is not a plain name
// (an index must not refer to other folders). Other contents are skipped. `text` may be hostile.
absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text);
// The same from a file of at most kMaxHeaderBytes; messages begin with its path.
absl::StatusOr<ShardIndex> ReadShardIndex(const std::string& path);

// As Transformers writes it: indented by two, keys sorted, ASCII, a line end. Names must be UTF-8.
std::string IndexText(const ShardIndex& index);

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kIndexFile[] = "model.safetensors.index.json";

struct Shard {
  std::size_t first = 0;  // of the tensors
  std::size_t count = 0;
  std::int64_t bytes = 0;
};

// Assigns tensors to shards in order, as many per shard as fit into `max_shard_bytes`, at least one. Without tensors:
// one empty shard. InvalidArgument: errors of ByteCount(), or more than 2^63 - 1 bytes in total.
absl::StatusOr<std::vector<Shard>> CutIntoShards(absl::Span<const TensorView> tensors,
                                                 std::int64_t max_shard_bytes);

// "model.safetensors" for a single shard, else "model-00002-of-00003.safetensors" for index 1 of 3.
std::string ShardName(std::size_t index, std::size_t shards);

// Whether a file name has the form of a shard's, with any numbers.
bool IsShardName(absl::string_view file);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_SHARD_INDEX_H_
