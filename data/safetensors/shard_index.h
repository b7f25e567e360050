// model.safetensors.index.json: which shard holds which tensor.
//
//   PLAIT_ASSIGN_OR_RETURN(const ShardIndex index, ReadShardIndex("gpt2/model.safetensors.index.json"));
//   index.files.at("wte.weight");  // "model-00001-of-00003.safetensors"
#ifndef PLAIT_DATA_SAFETENSORS_SHARD_INDEX_H_
#define PLAIT_DATA_SAFETENSORS_SHARD_INDEX_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data::safetensors {

struct ShardIndex {
  std::optional<std::int64_t> total_bytes;
  std::map<std::string, std::string> files;  // tensor -> file beside the index
};

// DataLoss, without a path: not JSON, no weight_map, a name twice, a file that is not a plain name (an index
// must not reach out of its folder). What else the index holds is skipped. `text` may be hostile.
absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text);
// The same from a file of at most kMaxHeaderBytes; messages begin with its path.
absl::StatusOr<ShardIndex> ReadShardIndex(const std::string& path);

// As Transformers writes it: indented by two, keys sorted, ASCII, a line end. Names must be UTF-8.
std::string IndexText(const ShardIndex& index);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_SHARD_INDEX_H_
