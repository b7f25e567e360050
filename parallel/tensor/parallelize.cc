#include "parallel/tensor/parallelize.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/nearest_word.h"
#include "base/status_macros.h"
#include "comm/gathered_text.h"

namespace plait::tensor_parallel {
namespace {

using models::Box;
using models::Placement;

constexpr const char* kNames[] = {"columns", "rows", "vocabulary"};
const char* NameOf(Split split) { return kNames[static_cast<int>(split)]; }

absl::Status Invalid(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

// Which groups are split as a whole; an error where one is not.
class MatchedGroups {
 public:
  MatchedGroups(const std::vector<SplitGroup>& groups) : groups_(groups) {}

  absl::Status Match(const PlanEntry& entry) {
    bool found = false;
    std::vector<std::string> names;
    for (const SplitGroup& group : groups_) {
      for (const SplitLayer& layer : group.layers) {
        names.push_back(layer.name);
        if (fnmatch(entry.modules.c_str(), layer.name.c_str(), 0) != 0) continue;
        found = true;
        if (layer.split != entry.split) {
          return Invalid(layer.name, absl::StrCat("the plan splits it by ", NameOf(entry.split),
                                                  "; this layer can be split by ", NameOf(layer.split)));
        }
        matched_.insert(layer.name);
      }
    }
    if (found) return absl::OkStatus();
    return Invalid(absl::StrCat("plan entry \"", entry.modules, "\""),
                   absl::StrCat("matches no layer that can be split; the nearest is ",
                                base::NearestWord(entry.modules, names)));
  }

  absl::Status Check() const {
    for (const SplitGroup& group : groups_) {
      const SplitLayer *in = nullptr, *out = nullptr;
      for (const SplitLayer& layer : group.layers) (Has(layer) ? in : out) = &layer;
      if (in != nullptr && out != nullptr) {
        return Invalid(group.name, absl::StrCat("the plan splits ", in->name, " but not ", out->name,
                                                "; these layers are split together or not at all"));
      }
    }
    return absl::OkStatus();
  }

  bool Has(const SplitLayer& layer) const { return matched_.count(layer.name) > 0; }
  bool Has(const SplitGroup& group) const { return !group.layers.empty() && Has(group.layers.front()); }

 private:
  const std::vector<SplitGroup>& groups_;
  std::set<std::string> matched_;
};

std::int64_t SplitSize(const SplitLayer& layer) {
  return layer.weight.size(layer.split == Split::kRows ? 1 : 0) / layer.sections;
}

absl::Status CheckSizes(const SplitGroup& group, int ranks) {
  for (const SplitLayer& layer : group.layers) {
    if (!layer.cut) continue;
    const std::int64_t pieces = SplitSize(layer) / layer.granularity;
    const bool bad = group.equal_parts ? pieces % ranks != 0 : pieces < ranks;
    if (!bad) continue;
    return Invalid(layer.name,
                   absl::StrCat(pieces, layer.granularity > 1 ? " heads" : " rows or columns", " for ", ranks,
                                " ranks; expected ",
                                group.equal_parts ? "a multiple of the ranks" : "at least one each"));
  }
  return absl::OkStatus();
}

// This rank's boxes of a tensor that is cut along `dimension` in `sections` equal sections.
std::vector<Box> BoxesOf(at::IntArrayRef shape, int dimension, std::int64_t sections,
                         std::int64_t granularity, const TensorAxis& axis) {
  const std::int64_t size = shape[dimension] / sections;
  Range part = axis.PartOf(size / granularity);
  part = {part.begin * granularity, part.end * granularity};
  std::vector<Box> boxes;
  for (std::int64_t section = 0; section < sections; ++section) {
    Box box = {std::vector<std::int64_t>(shape.size(), 0), shape.vec()};
    box.begin[dimension] = section * size + part.begin;
    box.size[dimension] = part.size();
    boxes.push_back(std::move(box));
  }
  return boxes;
}

void Cut(SplittableModel& model, const at::Tensor& parameter, int dimension, const SplitLayer& layer,
         const TensorAxis& axis) {
  Placement placement = {
      .shape = parameter.sizes().vec(),
      .boxes = BoxesOf(parameter.sizes(), dimension, layer.sections, layer.granularity, axis)};
  models::KeepLocalPart(parameter, placement);
  model.SetPlacement(parameter, std::move(placement));
}

void CutLayer(SplittableModel& model, const SplitLayer& layer, const TensorAxis& axis,
              const std::string& axis_name) {
  if (!layer.cut) {
    for (const at::Tensor* parameter : {&layer.weight, &layer.bias}) {
      if (parameter->defined()) model.SetPlacement(*parameter, {.partial = {axis_name}});
    }
    return;
  }
  Cut(model, layer.weight, layer.split == Split::kRows ? 1 : 0, layer, axis);
  if (layer.bias.defined() && layer.split != Split::kRows) Cut(model, layer.bias, 0, layer, axis);
}

bool IsPlaced(const Placement& placement, const std::string& axis) {
  const auto in = [&axis](const std::vector<std::string>& axes) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  return !placement.boxes.empty() || in(placement.partial) || in(placement.replicated);
}

std::string TextOf(const Plan& plan, const TensorAxisOptions& options) {
  std::string text = options.sequence_parallel ? "sequence parallel" : "";
  for (const PlanEntry& entry : plan)
    absl::StrAppend(&text, "; ", entry.modules, " by ", NameOf(entry.split));
  return text;
}

absl::Status CheckPlan(const std::vector<SplitGroup>& groups, MatchedGroups& matched, const Plan& plan,
                       const TensorAxisOptions& options, int ranks) {
  for (const PlanEntry& entry : plan) PLAIT_RETURN_IF_ERROR(matched.Match(entry));
  PLAIT_RETURN_IF_ERROR(matched.Check());
  for (const SplitGroup& group : groups) {
    if (matched.Has(group)) {
      PLAIT_RETURN_IF_ERROR(CheckSizes(group, ranks));
    } else if (options.sequence_parallel && ranks > 1) {
      return Invalid(group.name,
                     "sequence parallelism needs every group of layers split; add it to the plan");
    }
  }
  return absl::OkStatus();
}

}  // namespace

Plan DefaultPlan(SplittableModel& model, int ranks) {
  Plan plan;
  for (const SplitGroup& group : model.SplitGroups(ranks)) {
    for (const SplitLayer& layer : group.layers) plan.push_back({layer.name, layer.split});
  }
  return plan;
}

absl::Status Parallelize(SplittableModel& model, const comm::DeviceMesh& mesh, const Plan& plan,
                         const TensorAxisOptions& options, const std::string& axis_name) {
  const TensorAxis axis = mesh.Has(axis_name) ? TensorAxis(mesh.axis(axis_name), options) : TensorAxis();
  const std::vector<SplitGroup> groups = model.SplitGroups(axis.size());
  MatchedGroups matched(groups);
  absl::Status status = CheckPlan(groups, matched, plan, options, axis.size());
  const std::string text = TextOf(plan, options), first = comm::BroadcastText(mesh.world(), text);
  if (first != text) {
    status.Update(
        Invalid("tensor parallelism", absl::StrCat("the plan of rank ", mesh.world().rank(), " is \"", text,
                                                   "\", that of rank 0 is \"", first, "\"")));
  }
  PLAIT_RETURN_IF_ERROR(mesh.world().Agree(status));
  if (!axis.split()) return absl::OkStatus();
  for (const SplitGroup& group : groups) {
    if (!matched.Has(group)) continue;
    for (const SplitLayer& layer : group.layers) CutLayer(model, layer, axis, axis_name);
    group.use(axis);
  }
  model.UseTensorAxis(axis);
  // All other parameters act on rows: on all of them, or with sequence parallelism on this rank's.
  for (const models::ParameterUnit& unit : model.units()) {
    for (const models::ParameterSpec& spec : unit.parameters) {
      if (IsPlaced(spec.placement, axis_name)) continue;
      models::Placement placement = spec.placement;
      (axis.sequence_parallel() ? placement.partial : placement.replicated).push_back(axis_name);
      model.SetPlacement(spec.tensor, std::move(placement));
    }
  }
  return absl::OkStatus();
}

}  // namespace plait::tensor_parallel
