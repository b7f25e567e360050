// A model's tensors in one safetensors file, or in several with an index: the layout of Hugging Face's
// models.
//
//   PLAIT_RETURN_IF_ERROR(WriteModel("gpt2", tensors, {.max_shard_bytes = 2'000'000'000}));
//   PLAIT_ASSIGN_OR_RETURN(const Model model, Model::Open("gpt2"));
//   PLAIT_RETURN_IF_ERROR(model.ReadInto("wte.weight", {DType::kF32, {65, 128}}, wte_data));
//
// gpt2/model.safetensors, or
// gpt2/model-00001-of-00003.safetensors ... and gpt2/model.safetensors.index.json:
// {"metadata": {"total_size": BYTES OF ALL TENSORS}, "weight_map": {"wte.weight":
// "model-00001-of-00003.safetensors", ...}}
//
// Each file is written atomically, the index last. When a model overwrites another, the old index is removed
// before the first new shard replaces an old one: a process killed in between leaves shards without an index,
// never a mixture that looks like a model. To keep the old model, write into another folder.
#ifndef PLAIT_DATA_SAFETENSORS_MODEL_H_
#define PLAIT_DATA_SAFETENSORS_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/safetensors/file.h"
#include "data/safetensors/header.h"
#include "data/safetensors/tensor.h"

namespace plait::data::safetensors {

struct ModelOptions {
  Metadata metadata = {{"format", "pt"}};  // of every file
  // Most bytes of tensors per file; a larger tensor gets its own file. No index is written for a single file.
  std::int64_t max_shard_bytes = 5'000'000'000;
  // Names of files in the folder that say what the tensors mean, which the caller writes afterwards: removed just before
  // the first file of tensors is replaced, so that an interruption never leaves new tensors beside an old description.
  std::vector<std::string> descriptions = {};
};

// Writes a model into an existing folder, then removes files of an earlier model that are not part of it. Tensors
// are assigned to shards in their order. Errors of WriteFile(); InvalidArgument also for max_shard_bytes < 1. All
// names are checked before anything is written. Local; one writer per folder at a time.
absl::Status WriteModel(const std::string& folder, absl::Span<const TensorView> tensors,
                        const ModelOptions& options);

class Model {
 public:
  // `path`: a folder with model.safetensors, else with model.safetensors.index.json; or one such file (*.json: an
  // index). Errors of File::Open(); NotFound also if a shard is missing; DataLoss also if the index is invalid, or
  // index and shards do not list the same tensors.
  static absl::StatusOr<Model> Open(const std::string& path);

  const std::string& path() const { return path_; }  // as given to Open
  // In the order of shards, and of bytes within them.
  std::vector<std::string> Names() const;
  const std::vector<File>& files() const { return files_; }
  // Sum over all tensors.
  std::int64_t total_bytes() const;
  // total_size of the index, if given. Not checked: programs disagree on whether tied tensors count twice.
  std::optional<std::int64_t> index_total_bytes() const { return index_total_bytes_; }

  bool Has(absl::string_view name) const { return places_.contains(name); }
  // As in File.
  absl::StatusOr<TensorView> Find(absl::string_view name) const;
  absl::Status ReadInto(absl::string_view name, const TensorInfo& expected, void* data) const;

 private:
  Model(std::string path, std::vector<File> files, std::optional<std::int64_t> index_total_bytes);
  absl::StatusOr<const File*> FileOf(absl::string_view name) const;

  std::string path_;
  std::vector<File> files_;
  std::optional<std::int64_t> index_total_bytes_;
  absl::flat_hash_map<std::string, std::size_t> places_;  // name -> index into files_
};

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_MODEL_H_
