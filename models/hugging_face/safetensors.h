// Reads and writes weights in Hugging Face's layout, for all models.
//
//   class HuggingFaceLlama : public hugging_face::Weights { ... };      // a model's files, opened and checked
//   PLAIT_RETURN_IF_ERROR(files.ReadUnit(model, unit));                 // one unit at a time, or ReadAll(model)
//   PLAIT_RETURN_IF_ERROR(hugging_face::Save(folder, tensors, config_text, {}));
//
// A folder holds config.json and model.safetensors, or shards with model.safetensors.index.json
// (data/safetensors/model.h). If a file stores elements in another order than the parameter (transposed or permuted
// weights), a strided view of the parameter describes it. Local.
#ifndef PLAIT_MODELS_HUGGING_FACE_SAFETENSORS_H_
#define PLAIT_MODELS_HUGGING_FACE_SAFETENSORS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/safetensors/model.h"
#include "models/block_model.h"
#include "models/hugging_face/special_tokens.h"
#include "models/model_sizes.h"

namespace plait::hugging_face {

// A tensor in a file.
struct FileTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  // A view of the parameter, not recorded by autograd, whose elements in row-major order are those of the file.
  at::Tensor values;
};

// Maps a parameter of the state dict to one tensor of the files, or to several that together hold all of it.
using Layout = std::function<std::vector<FileTensor>(const std::string& name, const at::Tensor& parameter)>;
// A tensor stored in the file exactly as the parameter.
FileTensor AsItIs(const std::string& name_in_file, const at::Tensor& parameter);

// The tensors of all parameters and buffers of a model, and their names. The model may be on the meta device.
std::vector<FileTensor> TensorsOf(const models::BlockModel& model, const Layout& layout);
std::set<std::string> NamesOf(const models::BlockModel& model, const Layout& layout);

// Returns "model_type" of the folder's config.json: "gpt2", "llama", "vit". Errors name the file.
absl::StatusOr<std::string> ModelTypeOf(const std::string& folder);

class Weights {
 public:
  // Reads the parameters of one unit of `model`, which must not be on the meta device; values are converted to their
  // dtype. Of a split parameter the local part is kept, but the whole tensor is allocated while it is read. NotFound:
  // a tensor is missing. InvalidArgument: another shape, or a dtype other than F32, F64, BF16, F16. Messages name the
  // tensor.
  absl::Status ReadUnit(const models::BlockModel& model, std::size_t unit) const;
  absl::Status ReadAll(const models::BlockModel& model) const;

 protected:
  Weights(data::safetensors::Model files, Layout layout)
      : files_(std::move(files)), layout_(std::move(layout)) {}

 private:
  data::safetensors::Model files_;
  Layout layout_;
};

// InvalidArgument, naming the folder's config.json, if the files are too small for a model of these sizes. Call it
// before a model is made, even one on the meta device.
absl::Status CheckSizes(const data::safetensors::Model& files, const models::ModelSizes& sizes,
                        const std::string& folder);

// InvalidArgument "holds "NAME", which MODEL does not have" for the first name that is not in `known` and for which
// skip(name) is false.
absl::Status CheckNames(const data::safetensors::Model& files, const std::set<std::string>& known,
                        const std::string& model, const std::function<bool(const std::string&)>& skip);

// InvalidArgument "TENSOR is not EMBEDDING; REASON" if both are there and differ in type, shape or a byte: a head beside
// the embedding that config.json, or the model, ties it to. OK where the files have no TENSOR.
absl::Status CheckTied(const data::safetensors::Model& files, const std::string& tensor,
                       const std::string& embedding, const std::string& reason);

struct SaveOptions {
  std::int64_t max_shard_bytes = 5'000'000'000;  // of a file; a larger tensor has a file of its own
  // Contents of other files that describe the model, by name; empty contents: there must be no such file.
  std::map<std::string, std::string> descriptions = {};
  SpecialTokens special = {};  // of language models
};

// Writes the weights, the other descriptions, then config.json into an existing folder; if one of these differs, all are
// removed before weights are replaced. Copies weights that are on a device or whose element
// order differs. Errors as data::safetensors::WriteModel(); aborts for tensors on the meta device.
absl::Status Save(const std::string& folder, const std::vector<FileTensor>& tensors,
                  const std::string& config, const SaveOptions& options);

}  // namespace plait::hugging_face

#endif  // PLAIT_MODELS_HUGGING_FACE_SAFETENSORS_H_
