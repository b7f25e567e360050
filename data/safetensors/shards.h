// How a model is cut into files. Private to model.h.
#ifndef PLAIT_DATA_SAFETENSORS_SHARDS_H_
#define PLAIT_DATA_SAFETENSORS_SHARDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/safetensors/tensor.h"

namespace plait::data::safetensors {

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kIndexFile[] = "model.safetensors.index.json";

struct Shard {
  std::size_t first = 0;  // of the tensors
  std::size_t count = 0;
  std::int64_t bytes = 0;
};

// Tensors in their order, as many in a shard as fit into `max_shard_bytes`, at least one: never empty, save
// the only shard of no tensors. InvalidArgument: sizes that ByteCount() refuses, more than 2^63 - 1 bytes.
absl::StatusOr<std::vector<Shard>> CutIntoShards(absl::Span<const TensorView> tensors,
                                                 std::int64_t max_shard_bytes);

// "model.safetensors" where it is the only one, else "model-00002-of-00003.safetensors" for index 1 of 3.
std::string ShardName(std::size_t index, std::size_t shards);

// Whether a file is named as shards are, of whatever number.
bool IsShardName(absl::string_view file);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_SHARDS_H_
