// Weights in Hugging Face's layout: what readers and writers of all models share.
//
//   class HuggingFaceLlama : public hugging_face::Weights { ... };      // a model's files, opened and checked
//   PLAIT_RETURN_IF_ERROR(files.ReadUnit(model, unit));                 // for engines with room for one unit
//   PLAIT_RETURN_IF_ERROR(hugging_face::Save(folder, tensors, config_text, {}));
//
// A folder holds config.json and model.safetensors, or shards with model.safetensors.index.json
// (data/safetensors/model.h). Where a file's elements lie in another order than the parameter's, as transposed
// or permuted weights, a view of the parameter says how. Local.
#ifndef PLAIT_MODELS_HUGGING_FACE_SAFETENSORS_H_
#define PLAIT_MODELS_HUGGING_FACE_SAFETENSORS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/safetensors/model.h"
#include "models/block_model.h"
#include "models/model_sizes.h"

namespace plait::hugging_face {

// A tensor of a file.
struct FileTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  // A view of the parameter, not recorded by autograd: its elements, row by row, are those of the file.
  at::Tensor values;
};

// Where a parameter of the state dict lies: in one tensor of the file, or in parts that together are all of it.
using Layout = std::function<std::vector<FileTensor>(const std::string& name, const at::Tensor& parameter)>;
// In the file as in the parameter.
FileTensor AsItIs(const std::string& name_in_file, const at::Tensor& parameter);

// All parameters of a model in the layout; its parameters may be on kMeta.
std::vector<FileTensor> TensorsOf(const models::BlockModel& model, const Layout& layout);
std::set<std::string> NamesOf(const models::BlockModel& model, const Layout& layout);

// "model_type" of the folder's config.json: "gpt2", "llama". Errors name the file.
absl::StatusOr<std::string> ModelTypeOf(const std::string& folder);

class Weights {
 public:
  // Into the parameters of one unit of `model`, which have memory; numbers are converted to their type.
  // NotFound: a tensor is missing; InvalidArgument: another shape, a type that is not floating. Every message
  // names file and tensor.
  absl::Status ReadUnit(const models::BlockModel& model, std::size_t unit) const;
  absl::Status ReadAll(const models::BlockModel& model) const;

 protected:
  Weights(data::safetensors::Model files, Layout layout)
      : files_(std::move(files)), layout_(std::move(layout)) {}

 private:
  data::safetensors::Model files_;
  Layout layout_;
};

// InvalidArgument, naming the folder's config.json, where the files have no room for a model of such sizes: asked before
// one is made, also without memory for its parameters.
absl::Status CheckSizes(const data::safetensors::Model& files, const models::ModelSizes& sizes,
                        const std::string& folder);

// InvalidArgument "holds NAME, which MODEL does not have" for the first name that is neither in `known` nor
// skipped.
absl::Status CheckNames(const data::safetensors::Model& files, const std::set<std::string>& known,
                        const std::string& model, const std::function<bool(const std::string&)>& skip);

struct SaveOptions {
  std::int64_t max_shard_bytes = 5'000'000'000;
};

// Into an existing folder: the weights, then config.json. Needs memory for weights whose order differs.
// Errors as data::safetensors::WriteModel(); parameters on kMeta are a programming error.
absl::Status Save(const std::string& folder, const std::vector<FileTensor>& tensors,
                  const std::string& config, const SaveOptions& options);

}  // namespace plait::hugging_face

#endif  // PLAIT_MODELS_HUGGING_FACE_SAFETENSORS_H_
