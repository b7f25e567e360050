#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/safetensors/model.h"
#include "data/safetensors/shard_index.h"
#include "data/safetensors/writer.h"

namespace plait::data::safetensors {
namespace {

namespace fs = std::filesystem;

absl::Status CheckInput(absl::Span<const TensorView> tensors, const ModelOptions& options) {
  if (options.max_shard_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_shard_bytes is ", options.max_shard_bytes, ", expected at least 1"));
  }
  Header header = {.metadata = options.metadata, .entries = {}};
  for (const TensorView& tensor : tensors) header.entries.push_back({.name = tensor.name, .info = {}});
  return HeaderText(header).status();
}

absl::Status RemoveFile(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat(file.string(), ": cannot be removed"));
}

// Durably, before anything is replaced.
absl::Status RemoveDescriptions(const std::string& folder, const ModelOptions& options) {
  PLAIT_RETURN_IF_ERROR(RemoveFile(fs::path(folder) / kIndexFile));
  for (const std::string& file : options.descriptions)
    PLAIT_RETURN_IF_ERROR(RemoveFile(fs::path(folder) / file));
  base::SyncFolder(folder);
  return absl::OkStatus();
}

// Removes files of an earlier model that are not in `kept`.
absl::Status RemoveOthers(const std::string& folder, const std::set<std::string>& kept) {
  std::error_code error;
  std::vector<fs::path> others;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    const bool of_a_model = file == kModelFile || file == kIndexFile || IsShardName(file);
    if (of_a_model && !kept.contains(file)) others.push_back(entry->path());
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat(folder, ": cannot be listed"));
  for (const fs::path& file : others) PLAIT_RETURN_IF_ERROR(RemoveFile(file));
  if (!others.empty()) base::SyncFolder(folder);  // an old model.safetensors comes before a new index
  return absl::OkStatus();
}

absl::Status WriteShards(const std::string& folder, absl::Span<const TensorView> tensors,
                         const std::vector<Shard>& shards, const ModelOptions& options, ShardIndex* index) {
  std::int64_t left = *index->total_bytes;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto part = tensors.subspan(shards[i].first, shards[i].count);
    const std::string file = ShardName(i, shards.size());
    for (const TensorView& tensor : part) index->files[tensor.name] = file;
    WriteSteps steps = {.needed_bytes = left, .before_replacing = nullptr};
    if (i == 0) steps.before_replacing = [&] { return RemoveDescriptions(folder, options); };
    PLAIT_RETURN_IF_ERROR(WriteFile(absl::StrCat(folder, "/", file), part, options.metadata, steps));
    left -= shards[i].bytes;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteModel(const std::string& folder, absl::Span<const TensorView> tensors,
                        const ModelOptions& options) {
  PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckInput(tensors, options), folder));
  const absl::StatusOr<std::vector<Shard>> shards = CutIntoShards(tensors, options.max_shard_bytes);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(shards.status(), folder));
  ShardIndex index = {.total_bytes = 0, .files = {}};
  for (const Shard& shard : *shards) *index.total_bytes += shard.bytes;
  PLAIT_RETURN_IF_ERROR(WriteShards(folder, tensors, *shards, options, &index));
  std::set<std::string> kept;
  for (std::size_t i = 0; i < shards->size(); ++i) kept.insert(ShardName(i, shards->size()));
  if (shards->size() > 1) {
    PLAIT_RETURN_IF_ERROR(WriteWholeFile(absl::StrCat(folder, "/", kIndexFile), IndexText(index)));
    kept.insert(kIndexFile);
  }
  return RemoveOthers(folder, kept);
}

}  // namespace plait::data::safetensors
