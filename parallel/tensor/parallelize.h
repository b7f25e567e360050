// Splits the layers of a model over the tensor axis of a mesh, as a plan says.
//
//   const comm::DeviceMesh mesh = ...;                               // dp_shard=2,tp=4
//   llama::Llama model(options, at::TensorOptions(at::kMeta));       // whole, without memory
//   PLAIT_RETURN_IF_ERROR(Parallelize(model, mesh, {
//       {"layers.*.attention.w[qkv]", Split::kColumns},
//       {"layers.*.attention.wo", Split::kRows},
//       {"tok_embeddings", Split::kVocabulary}}));
//   PLAIT_RETURN_IF_ERROR(Parallelize(model, mesh, DefaultPlan(model, 4)));   // or everything that can be
//
// A model lists its layers in groups that are split together or not at all (the columns of an attention's
// queries and the rows of its output). Parallelize replaces the parameters by this rank's parts, on their
// device, and notes in the placement of every parameter of the model what is local and how its gradient is
// summed. Do it before memory is allocated and before an engine takes the parameters.
#ifndef PLAIT_PARALLEL_TENSOR_PARALLELIZE_H_
#define PLAIT_PARALLEL_TENSOR_PARALLELIZE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/device_mesh.h"
#include "models/block_model.h"
#include "parallel/tensor/tensor_axis.h"

namespace plait::tensor_parallel {

enum class Split {
  kColumns,     // weight (out, in) and bias (out) along `out`
  kRows,        // weight along `in`; the bias is whole
  kVocabulary,  // a table (vocabulary, width), and a head that it is, along the vocabulary
};

// A layer as the model offers it.
struct SplitLayer {
  std::string name;  // of the module: "layers.0.attention.wq"
  Split split = Split::kColumns;
  at::Tensor weight;
  at::Tensor bias = {};  // undefined: none
  // Equal sections of `out` that are split each by itself: 3 of a fused query-key-value weight.
  std::int64_t sections = 1;
  // Columns or rows that stay together: the width of a head.
  std::int64_t granularity = 1;
  // False: the rank keeps all of the weight and its gradient is a part (keys of fewer heads than ranks).
  bool cut = true;
};

struct SplitGroup {
  std::string name;  // for messages: "layers.0.attention"
  std::vector<SplitLayer> layers;
  // Parts of the group must be equal: heads. Otherwise they differ by `granularity` at most.
  bool equal_parts = false;
  // Told once that the layers are split over `axis`.
  std::function<void(const TensorAxis& axis)> use;
};

class SplittableModel {
 public:
  virtual ~SplittableModel() = default;
  // The layers that can be split over `ranks` ranks, every one in one group.
  virtual std::vector<SplitGroup> SplitGroups(int ranks) = 0;
  // Of the whole model: what its prologue, epilogue and blocks do between split layers. A parameter that acts on
  // other rows than the residual stream's gets its placement here.
  virtual void UseTensorAxis(const TensorAxis& axis) = 0;
  virtual std::vector<models::ParameterUnit> units() const = 0;
  virtual void SetPlacement(const at::Tensor& parameter, models::Placement placement) = 0;
};

struct PlanEntry {
  std::string modules;  // a glob as fnmatch(3) reads it, over module names; "*" matches dots too
  Split split;
};
using Plan = std::vector<PlanEntry>;

// Every layer that the model offers, split as it offers it.
Plan DefaultPlan(SplittableModel& model, int ranks);

// Collective along the axis, before any message of the model. INVALID_ARGUMENT, the same on all ranks and with
// nothing changed, where a glob matches no layer (the nearest names are told), a layer cannot be split so, a
// group is not split as a whole, heads or other equal parts do not divide, a dimension has fewer parts than
// ranks, sequence parallelism is asked for and a group is left whole, or ranks bring different plans. A mesh
// without the axis, or with one rank along it, changes nothing, but a plan is checked all the same.
absl::Status Parallelize(SplittableModel& model, const comm::DeviceMesh& mesh, const Plan& plan,
                         const TensorAxisOptions& options = {}, const std::string& axis_name = "tp");

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_PARALLELIZE_H_
