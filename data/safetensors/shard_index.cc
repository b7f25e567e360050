#include "data/safetensors/shard_index.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "data/mapped_file.h"
#include "data/safetensors/header.h"
#include "data/safetensors/tensor.h"
#include "nlohmann/json.hpp"

namespace plait::data::safetensors {
namespace {

using Json = nlohmann::json;

// Parser callback: records the keys of the root and of the current object in it, and detects duplicates.
class KeyWatch {
 public:
  // Discards what is nested deeper than in an index, so that nesting takes no memory.
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    const bool kept = depth < static_cast<int>(keys_.size());
    if (event == Json::parse_event_t::object_start && kept) keys_[depth].clear();
    if (event == Json::parse_event_t::key && depth <= 2 && !keys_[depth - 1].insert(parsed).second)
      twice_ = parsed;
    return depth <= 2;
  }

  const std::optional<std::string>& twice() const { return twice_; }

 private:
  std::array<std::set<std::string>, 2> keys_;
  std::optional<std::string> twice_;
};

bool IsPlainName(const std::string& file) {
  return !file.empty() && file != "." && file != ".." && file.find('/') == std::string::npos &&
         file.find('\0') == std::string::npos;
}

absl::StatusOr<Json> ParseObject(absl::string_view text) {
  KeyWatch watch;
  const auto callback = [&watch](int depth, Json::parse_event_t event, Json& parsed) {
    return watch(depth, event, parsed);
  };
  Json root = Json::parse(text.begin(), text.end(), callback, /*allow_exceptions=*/false);
  if (!root.is_object() || text.find('\0') != absl::string_view::npos) {
    return absl::DataLossError("not JSON, expected an object with weight_map");
  }
  if (watch.twice()) {
    return absl::DataLossError(absl::StrCat("duplicate name ", Quoted(*watch.twice())));
  }
  return root;
}

std::optional<std::int64_t> TotalBytes(const Json& root) {
  const auto metadata = root.find("metadata");
  if (metadata == root.end() || !metadata->is_object()) return std::nullopt;
  const auto total = metadata->find("total_size");
  if (total == metadata->end() || !total->is_number_unsigned()) return std::nullopt;
  const auto value = total->get<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

bool IsCount(absl::string_view text) {
  return text.size() >= 5 && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

}  // namespace

absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text) {
  PLAIT_ASSIGN_OR_RETURN(const Json root, ParseObject(text));
  const auto map = root.find("weight_map");
  if (map == root.end() || !map->is_object()) {
    return absl::DataLossError("no weight_map, expected one with a file for every tensor");
  }
  ShardIndex index = {.total_bytes = TotalBytes(root), .files = {}};
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || !IsPlainName(file.get<std::string>())) {
      return absl::DataLossError(absl::StrCat("weight_map of ", Quoted(name),
                                              " is not a plain file name, expected a file beside the index"));
    }
    index.files[name] = file.get<std::string>();
  }
  return index;
}

absl::StatusOr<ShardIndex> ReadShardIndex(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > static_cast<std::size_t>(kMaxHeaderBytes)) {
    return absl::DataLossError(absl::StrCat(path, ": ", file.bytes().size(),
                                            " bytes, expected an index of at most ", kMaxHeaderBytes));
  }
  absl::StatusOr<ShardIndex> index = ParseShardIndex(file.bytes());
  PLAIT_RETURN_IF_ERROR(base::Prefixed(index.status(), path));
  return index;
}

std::string IndexText(const ShardIndex& index) {
  Json root = {{"metadata", Json::object()}, {"weight_map", Json(index.files)}};
  if (index.total_bytes) root["metadata"]["total_size"] = *index.total_bytes;
  return root.dump(2, ' ', /*ensure_ascii=*/true) + "\n";
}

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
