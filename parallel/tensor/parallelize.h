// Splits the layers of a model over the tensor axis of a mesh according to a plan.
//
//   const comm::DeviceMesh mesh = ...;                               // dp_shard=2,tp=4
//   llama::Llama model(options, at::TensorOptions(at::kMeta));       // unsplit, without memory
//   PLAIT_RETURN_IF_ERROR(Parallelize(model, mesh, {
//       {"layers.*.attention.w[qkv]", Split::kColumns},
//       {"layers.*.attention.wo", Split::kRows},
//       {"tok_embeddings", Split::kVocabulary}}));
//   PLAIT_RETURN_IF_ERROR(Parallelize(model, mesh, DefaultPlan(model, 4)));   // or all layers that can be split
//
// A model lists its layers in groups that are split together or not at all (e.g. queries, keys, values by columns and
// the output projection by rows). Parallelize replaces the parameters by this rank's parts, on the same device, and
// records in the placement of every parameter which part is local and how its gradient is reduced. Call it before
// memory is allocated and before DataParallel::Create.
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
  kVocabulary,  // an embedding table (vocabulary, width), which may be tied to the head, along the vocabulary
};

// A layer that can be split.
struct SplitLayer {
  std::string name;  // of the module: "layers.0.attention.wq"
  Split split = Split::kColumns;
  at::Tensor weight;
  at::Tensor bias = {};  // undefined: none
  // Equal sections of `out` that are split separately: 3 for a fused query-key-value weight.
  std::int64_t sections = 1;
  // Columns or rows that stay together: the width of a head.
  std::int64_t granularity = 1;
  // False: every rank keeps the whole weight, and its gradient is partial (key heads that do not divide).
  bool cut = true;
};

struct SplitGroup {
  std::string name;  // for messages: "layers.0.attention"
  std::vector<SplitLayer> layers;
  // True: all ranks must get equal parts (heads). Otherwise they may differ by `granularity`.
  bool equal_parts = false;
  // Called once, when the layers have been split over `axis`.
  std::function<void(const TensorAxis& axis)> use;
};

class SplittableModel {
 public:
  virtual ~SplittableModel() = default;
  // The layers that can be split over `ranks` ranks, each in exactly one group.
  virtual std::vector<SplitGroup> SplitGroups(int ranks) = 0;
  // Sets the axis of the whole model, for what prologue, epilogue and blocks do between split layers. Must set the
  // placement of parameters that act on other rows than those of the residual stream.
  virtual void UseTensorAxis(const TensorAxis& axis) = 0;
  virtual std::vector<models::ParameterUnit> units() const = 0;
  virtual void SetPlacement(const at::Tensor& parameter, models::Placement placement) = 0;
};

struct PlanEntry {
  std::string modules;  // a glob as fnmatch(3) reads it, over module names; "*" matches dots too
  Split split;
};
using Plan = std::vector<PlanEntry>;

// Splits every layer of SplitGroups(ranks).
Plan DefaultPlan(SplittableModel& model, int ranks);

// Collective over the mesh. INVALID_ARGUMENT, the same on all ranks and with nothing changed, if a glob matches no
// layer (the message names the nearest one), a layer cannot be split that way, a group is only partly split, heads or
// other equal parts are not a multiple of the ranks, a dimension has fewer parts than ranks, sequence parallelism is
// requested and a group is not split, or plans or options differ between ranks of the mesh. On a mesh without the axis,
// or with one rank along it, only checks the plan.
absl::Status Parallelize(SplittableModel& model, const comm::DeviceMesh& mesh, const Plan& plan,
                         const TensorAxisOptions& options = {}, const std::string& axis_name = "tp");

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_PARALLELIZE_H_
