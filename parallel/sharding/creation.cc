#include "parallel/sharding/creation.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "comm/buffer.h"

namespace plait::parallel {
namespace {

std::string Describe(const std::string& unit, const std::string& name, const at::Tensor& parameter) {
  return absl::StrCat("unit \"", unit, "\": ", name, " (", absl::StrJoin(parameter.sizes(), ", "), ") ",
                      toString(parameter.scalar_type()));
}

std::string Describe(const std::vector<ParameterUnit>& units, const DataParallelOptions& options) {
  std::string text = absl::StrCat(
      "strategy ", Name(options.strategy), ", parameters in ", toString(options.compute_type), ", prefetch ",
      options.prefetch, ", reshard after forward ", options.reshard_after_forward, ", masters in ",
      Name(options.masters_place.place), ", parameters offloaded ", options.offloads_parameters);
  for (const ParameterUnit& unit : units) {
    for (const auto& [name, parameter] : unit.parameters) {
      absl::StrAppend(&text, "\n", Describe(unit.name, name, parameter), unit.root ? ", root" : ", block");
    }
  }
  return text;
}

// The text of rank 0.
std::string TextOfFirst(const comm::Communicator& comm, std::string text) {
  std::int64_t size = static_cast<std::int64_t>(text.size());
  comm.Broadcast(comm::BufferOf(absl::MakeSpan(&size, 1)), /*root=*/0);
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.resize(static_cast<std::size_t>(size));
  comm.Broadcast(comm::BufferOf(absl::MakeSpan(bytes)), /*root=*/0);
  return std::string(bytes.begin(), bytes.end());
}

absl::Status CompareWithFirst(const comm::Communicator& comm, const std::string& mine) {
  if (comm.size() == 1) return absl::OkStatus();
  const std::string first = TextOfFirst(comm, mine);
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

absl::Status CheckParameter(const std::string& where, const at::Tensor& parameter, const at::Tensor& first,
                            bool initializes) {
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
  };
  if (!parameter.is_leaf() || !parameter.requires_grad()) return bad("is no leaf that requires a gradient");
  if (parameter.scalar_type() != first.scalar_type() || parameter.device() != first.device()) {
    return bad("has another type or device than the first parameter; all parameters have one");
  }
  if (parameter.is_meta() && !initializes) return bad("is on the meta device, and nothing initializes it");
  return absl::OkStatus();
}

absl::Status CheckOffload(const DataParallelOptions& options) {
  if (!options.offloads_parameters) return absl::OkStatus();
  if (!ShardsParameters(options.strategy)) {
    return absl::InvalidArgumentError(absl::StrCat("strategy ", Name(options.strategy),
                                                   " keeps parameters whole in memory, they cannot be "
                                                   "offloaded; choose fsdp (zero3)"));
  }
  if (options.masters_place.place == StatePlace::kMemory) {
    return absl::InvalidArgumentError(
        "parameters are to be offloaded, but their masters are to stay in memory; name the host or a file "
        "for "
        "the masters");
  }
  return absl::OkStatus();
}

absl::Status CheckOwn(const DataParallelAxes& axes, const std::vector<ParameterUnit>& units,
                      const DataParallelOptions& options, bool initializes) {
  if (options.strategy == Strategy::kDdp && axes.shard.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("strategy ddp shards nothing, but axis ", axes.shard.name(), " has ", axes.shard.size(),
                     " ranks; give them to ", axes.replicate.name(), ", or choose zero1, zero2 or fsdp"));
  }
  PLAIT_RETURN_IF_ERROR(CheckOffload(options));
  const at::Tensor* first = nullptr;
  for (const ParameterUnit& unit : units) {
    for (const auto& [name, parameter] : unit.parameters) {
      if (first == nullptr) first = &parameter;
      PLAIT_RETURN_IF_ERROR(CheckParameter(name, parameter, *first, initializes));
    }
  }
  if (first == nullptr) return absl::InvalidArgumentError("a model without parameters");
  return absl::OkStatus();
}

}  // namespace

absl::Status AgreeAlongAxes(const DataParallelAxes& axes, const absl::Status& mine) {
  return axes.replicate.Agree(axes.shard.Agree(mine));
}

absl::Status CheckUnits(const DataParallelAxes& axes, const std::vector<ParameterUnit>& units,
                        const DataParallelOptions& options, bool initializes) {
  PLAIT_RETURN_IF_ERROR(AgreeAlongAxes(axes, CheckOwn(axes, units, options, initializes)));
  const std::string mine = Describe(units, options);
  const absl::Status along_shard = CompareWithFirst(axes.shard, mine);
  const absl::Status along_replicate = CompareWithFirst(axes.replicate, mine);
  return AgreeAlongAxes(axes, along_shard.ok() ? along_replicate : along_shard);
}

}  // namespace plait::parallel
