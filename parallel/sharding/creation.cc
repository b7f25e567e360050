#include "parallel/sharding/creation.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "comm/buffer.h"
#include "comm/gathered_text.h"
#include "comm/tensor_type.h"

namespace plait::parallel {
namespace {

using models::ParameterRole;
using models::ParameterSpec;
using models::ParameterUnit;

bool IsTrained(const ParameterSpec& parameter) { return parameter.role == ParameterRole::kTrained; }

// Whether ranks along `axis` must have the same parameter.
bool IsShared(const ParameterUnit& unit, const ParameterSpec& parameter, const std::string& axis) {
  const auto in = [&](const std::vector<std::string>& axes) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  return unit.replicate_axis == axis || unit.shard_axis == axis || in(parameter.placement.replicated) ||
         in(parameter.placement.partial);
}

std::string Describe(const ParameterUnit& unit, const ParameterSpec& parameter) {
  constexpr const char* kRoles[] = {"", ", frozen", ", buffer"};
  return absl::StrCat(
      "unit \"", unit.name, "\": ", parameter.name, " (", absl::StrJoin(parameter.tensor.sizes(), ", "), ") ",
      toString(parameter.tensor.scalar_type()), unit.block == ParameterUnit::kRoot ? ", root" : ", block",
      kRoles[static_cast<int>(parameter.role)], parameter.decays ? ", decays" : "");
}

std::string Describe(const DataParallelOptions& options) {
  return absl::StrCat("strategy ", Name(options.strategy), ", parameters in ", toString(options.compute_type),
                      options.reproducible ? ", reproducible" : "", ", prefetch ", options.prefetch,
                      ", reshard after forward ", options.reshard_after_forward, ", masters in ",
                      Name(options.masters_offload.target), ", parameters offloaded ",
                      options.offloads_parameters, ", parts of ", options.part_bytes, " bytes, on ",
                      c10::DeviceTypeName(options.device.type()));
}

std::string DescribeAlong(const std::string& axis, const std::vector<ParameterUnit>& units,
                          const DataParallelOptions& options) {
  std::string text = Describe(options);
  for (const ParameterUnit& unit : units) {
    for (const ParameterSpec& parameter : unit.parameters) {
      if (IsShared(unit, parameter, axis)) absl::StrAppend(&text, "\n", Describe(unit, parameter));
    }
  }
  return text;
}

absl::Status CompareWithFirst(const comm::Communicator& comm, const std::string& mine) {
  if (comm.size() == 1) return absl::OkStatus();
  const std::string first = comm::BroadcastText(comm, mine);
  if (first == mine) return absl::OkStatus();
  const std::vector<std::string> a = absl::StrSplit(first, '\n'), b = absl::StrSplit(mine, '\n');
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  const auto line = [i](const std::vector<std::string>& lines) {
    return i < lines.size() ? lines[i] : std::string("nothing");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "the model of rank ", comm.rank(), " along ", comm.name(), " is not that of rank 0: \"", line(b),
      "\" where rank 0 has \"", line(a), "\"; give all ranks the same flags and program"));
}

absl::Status CheckParameter(const ParameterSpec& parameter, const at::Tensor& first, bool initializes) {
  const at::Tensor& tensor = parameter.tensor;
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(parameter.name, ": ", what));
  };
  if (tensor.is_meta() && !initializes) return bad("is on the meta device, and no initializer is given");
  if (!comm::HasDataType(tensor.scalar_type())) {
    return bad(absl::StrCat("is ", toString(tensor.scalar_type()),
                            ", which collectives do not support; convert it to Int, or leave it out"));
  }
  if (!IsTrained(parameter)) {
    if (tensor.requires_grad()) return bad("is frozen or a buffer, but requires a gradient");
    return absl::OkStatus();
  }
  if (!tensor.is_leaf() || !tensor.requires_grad()) return bad("is not a leaf that requires a gradient");
  if (tensor.scalar_type() != first.scalar_type() || tensor.device() != first.device()) {
    return bad("has another type or device than the first parameter; all parameters have one");
  }
  return absl::OkStatus();
}

// A tensor that is listed twice would be two shards with two optimizer states.
absl::Status CheckListedOnce(const std::vector<ParameterUnit>& units) {
  std::map<const void*, const ParameterSpec*> by_handle, by_memory;
  for (const ParameterUnit& unit : units) {
    for (const ParameterSpec& parameter : unit.parameters) {
      const at::Tensor& tensor = parameter.tensor;
      const ParameterSpec* other =
          by_handle.try_emplace(tensor.unsafeGetTensorImpl(), &parameter).first->second;
      if (other == &parameter && !tensor.is_meta() && tensor.numel() > 0) {
        other = by_memory.try_emplace(tensor.const_data_ptr(), &parameter).first->second;
      }
      if (other == &parameter) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(parameter.name, " of unit \"", unit.name, "\" is the same tensor as ", other->name,
                       "; list a tied parameter once, in a root unit: every block may use those"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOffload(const DataParallelOptions& options) {
  if (!options.offloads_parameters) return absl::OkStatus();
  if (!ShardsParameters(options.strategy)) {
    return absl::InvalidArgumentError(absl::StrCat("strategy ", Name(options.strategy),
                                                   " keeps parameters unsharded in memory, they cannot be "
                                                   "offloaded; choose fsdp (zero3)"));
  }
  if (options.masters_offload.target == OffloadTarget::kMemory) {
    return absl::InvalidArgumentError(
        "parameters are to be offloaded, but their masters are to stay in memory; name the host or a file "
        "for the masters");
  }
  return absl::OkStatus();
}

absl::Status CheckAxes(const comm::DeviceMesh& mesh, const std::vector<ParameterUnit>& units,
                       const DataParallelOptions& options) {
  for (const ParameterUnit& unit : units) {
    if (!mesh.Has(unit.shard_axis) || options.strategy != Strategy::kDdp) continue;
    const comm::Communicator& shard = mesh.axis(unit.shard_axis);
    if (shard.size() == 1) continue;
    return absl::InvalidArgumentError(absl::StrCat("strategy ddp does not shard, but axis ", shard.name(),
                                                   " has ", shard.size(), " ranks; give them to ",
                                                   unit.replicate_axis, ", or choose zero1, zero2 or fsdp"));
  }
  return absl::OkStatus();
}

absl::Status CheckReproducible(const comm::DeviceMesh& mesh, const std::vector<ParameterUnit>& units,
                               const ParameterSpec& first, at::Device device) {
  if (!first.tensor.is_meta()) device = first.tensor.device();
  const bool has_one_order = device.is_cpu() || device.is_meta();
  if (!has_one_order) return absl::InvalidArgumentError("reproducible sums: expected parameters on CPU");
  if (const at::ScalarType type = first.tensor.scalar_type(); type != at::kFloat && type != at::kDouble) {
    return absl::InvalidArgumentError(
        absl::StrCat("reproducible sums: parameters are ", toString(type),
                     "; expected Float or Double, with compute_type for narrower computation"));
  }
  for (const ParameterUnit& unit : units) {
    for (const std::string& name : {unit.replicate_axis, unit.shard_axis}) {
      const int ranks = AxisOrSelf(mesh, name).size();
      if (std::has_single_bit(static_cast<unsigned>(ranks))) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("reproducible sums: axis ", name, " has ", ranks, " ranks; expected a power of two"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOwn(const comm::DeviceMesh& mesh, const std::vector<ParameterUnit>& units,
                      const DataParallelOptions& options, bool initializes) {
  PLAIT_RETURN_IF_ERROR(CheckAxes(mesh, units, options));
  PLAIT_RETURN_IF_ERROR(CheckOffload(options));
  PLAIT_RETURN_IF_ERROR(CheckListedOnce(units));
  const ParameterSpec* first = nullptr;
  for (const ParameterUnit& unit : units) {
    for (const ParameterSpec& parameter : unit.parameters) {
      if (first == nullptr && IsTrained(parameter)) first = &parameter;
      PLAIT_RETURN_IF_ERROR(
          CheckParameter(parameter, first == nullptr ? parameter.tensor : first->tensor, initializes));
    }
  }
  if (first == nullptr) return absl::InvalidArgumentError("a model without trained parameters");
  if (!options.reproducible) return absl::OkStatus();
  return CheckReproducible(mesh, units, *first, options.device);
}

}  // namespace

comm::Communicator AxisOrSelf(const comm::DeviceMesh& mesh, const std::string& name) {
  return mesh.Has(name) ? mesh.axis(name) : comm::Communicator::Self();
}

absl::Status CheckUnits(const comm::DeviceMesh& mesh, const std::vector<ParameterUnit>& units,
                        const DataParallelOptions& options, bool initializes) {
  PLAIT_RETURN_IF_ERROR(mesh.world().Agree(CheckOwn(mesh, units, options, initializes)));
  absl::Status compared;
  for (const comm::MeshAxis& axis : mesh.axes()) {
    compared.Update(CompareWithFirst(mesh.axis(axis.name), DescribeAlong(axis.name, units, options)));
  }
  return mesh.world().Agree(compared);
}

}  // namespace plait::parallel
