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
// Each file appears whole or not at all, the index last. Where a model is written over another, the old index
// goes when the first new shard is complete, before it takes an old one's place: who is killed in between
// leaves shards without an index, never a mixture that looks like a model. To keep the old one, write into
// another folder.
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
  // Bytes of tensors in a file. A tensor that is larger has a file of its own. One file: no index.
  std::int64_t max_shard_bytes = 5'000'000'000;
};

// Into an existing folder; files of a model that was there and that this one does not have are removed.
// Tensors keep their order over the shards. Errors as WriteFile(); InvalidArgument also for a limit below 1
// byte. A name that is twice in the model is found before anything is written. Local: one writer per folder.
absl::Status WriteModel(const std::string& folder, absl::Span<const TensorView> tensors,
                        const ModelOptions& options);

class Model {
 public:
  // `path`: a folder with model.safetensors or, where there is none, model.safetensors.index.json; or one
  // such file. As File::Open(); NotFound: no model there, or a shard is missing (named); DataLoss: an index
  // that is none, or that names a tensor which its shard does not hold, or leaves one out.
  static absl::StatusOr<Model> Open(const std::string& path);

  // In the order of shards, and of bytes within them.
  std::vector<std::string> Names() const;
  const std::vector<File>& files() const { return files_; }
  // Of all tensors.
  std::int64_t total_bytes() const;
  // What the index says. Not compared: programs disagree whether tied tensors count twice.
  std::optional<std::int64_t> index_total_bytes() const { return index_total_bytes_; }

  bool Has(absl::string_view name) const { return places_.contains(name); }
  // As those of File.
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
