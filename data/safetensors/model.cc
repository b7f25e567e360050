#include "data/safetensors/model.h"

#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/safetensors/shard_index.h"

namespace plait::data::safetensors {
namespace {

namespace fs = std::filesystem;

// The file to open for the model at `path`.
absl::StatusOr<std::string> FindStart(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const char* file : {kModelFile, kIndexFile}) {
    const fs::path candidate = fs::path(path) / file;
    if (fs::exists(candidate, ignored)) return candidate.string();
  }
  return absl::NotFoundError(absl::StrCat(path, ": no model, expected ", kModelFile, " or ", kIndexFile));
}

absl::StatusOr<std::vector<File>> OpenShards(const std::string& index_path, const ShardIndex& index) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.files) names.insert(file);
  std::vector<File> files;
  for (const std::string& name : names) {
    absl::StatusOr<File> file = File::Open(absl::StrCat(FolderOf(index_path), "/", name));
    if (absl::IsNotFound(file.status())) {
      return absl::NotFoundError(absl::StrCat(index_path, ": shard ", Quoted(name), " is missing, expected ",
                                              names.size(), " shards beside the index"));
    }
    PLAIT_RETURN_IF_ERROR(file.status());
    files.push_back(*std::move(file));
  }
  return files;
}

// Index and shard must list the same tensors.
absl::Status CheckShard(const std::string& index_path, const ShardIndex& index, const File& shard) {
  const std::string name = fs::path(shard.path()).filename().string();
  for (const auto& [tensor, file] : index.files) {
    if (file == name && !shard.Has(tensor)) {
      return absl::DataLossError(absl::StrCat(index_path, ": tensor ", Quoted(tensor), " is not in shard ",
                                              Quoted(name), ", expected there"));
    }
  }
  for (const Header::Entry& entry : shard.entries()) {
    const auto found = index.files.find(entry.name);
    if (found != index.files.end() && found->second == name) continue;
    return absl::DataLossError(absl::StrCat(index_path, ": weight_map leaves out tensor ", Quoted(entry.name),
                                            " of shard ", Quoted(name),
                                            ", expected all of a shard's tensors"));
  }
  return absl::OkStatus();
}

}  // namespace

Model::Model(std::string path, std::vector<File> files, std::optional<std::int64_t> index_total_bytes)
    : path_(std::move(path)), files_(std::move(files)), index_total_bytes_(index_total_bytes) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    for (const Header::Entry& entry : files_[i].entries()) places_[entry.name] = i;
  }
}

absl::StatusOr<Model> Model::Open(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const std::string start, FindStart(path));
  if (!absl::EndsWith(start, ".json")) {
    PLAIT_ASSIGN_OR_RETURN(File file, File::Open(start));
    std::vector<File> files;
    files.push_back(std::move(file));
    return Model(start, std::move(files), std::nullopt);
  }
  PLAIT_ASSIGN_OR_RETURN(const ShardIndex index, ReadShardIndex(start));
  PLAIT_ASSIGN_OR_RETURN(std::vector<File> files, OpenShards(start, index));
  for (const File& file : files) PLAIT_RETURN_IF_ERROR(CheckShard(start, index, file));
  return Model(start, std::move(files), index.total_bytes);
}

std::vector<std::string> Model::Names() const {
  std::vector<std::string> names;
  for (const File& file : files_) {
    for (const Header::Entry& entry : file.entries()) names.push_back(entry.name);
  }
  return names;
}

std::int64_t Model::total_bytes() const {
  std::int64_t bytes = 0;
  for (const File& file : files_) bytes += file.data_bytes();
  return bytes;
}

absl::StatusOr<const File*> Model::FileOf(absl::string_view name) const {
  const auto place = places_.find(name);
  if (place != places_.end()) return &files_[place->second];
  return absl::NotFoundError(
      absl::StrCat(path_, ": no tensor ", Quoted(name), " among its ", places_.size()));
}

absl::StatusOr<TensorView> Model::Find(absl::string_view name) const {
  PLAIT_ASSIGN_OR_RETURN(const File* file, FileOf(name));
  return file->Find(name);
}

absl::Status Model::ReadInto(absl::string_view name, const TensorInfo& expected, void* data) const {
  PLAIT_ASSIGN_OR_RETURN(const File* file, FileOf(name));
  return file->ReadInto(name, expected, data);
}

}  // namespace plait::data::safetensors
