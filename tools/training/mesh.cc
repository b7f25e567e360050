#include "tools/training/mesh.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace plait::training {
namespace {

constexpr char kForm[] = "expected axes and sizes such as dp_replicate=2,dp_shard=2";

// Every axis there is a name for, and what is missing for those that cannot be used yet.
constexpr std::pair<const char*, const char*> kAxes[] = {{"dp_replicate", ""},
                                                         {"dp_shard", ""},
                                                         {"lp", ""},
                                                         {"pp", "pipeline parallelism"},
                                                         {"tp", "tensor parallelism"},
                                                         {"cp", "context parallelism"},
                                                         {"ep", "expert parallelism"}};

absl::Status Invalid(const std::string& mesh, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--mesh=", mesh, ": ", what));
}

absl::Status CheckAxis(const std::string& mesh, absl::string_view name) {
  for (const auto& [known, missing] : kAxes) {
    if (name != known) continue;
    if (*missing == '\0') return absl::OkStatus();
    return Invalid(mesh, absl::StrCat(missing, " (", name, ") is not available yet; ", kForm));
  }
  return Invalid(mesh, absl::StrCat("no axis \"", name, "\"; ", kForm));
}

int* SizeOf(std::vector<comm::MeshAxis>& axes, absl::string_view name) {
  for (comm::MeshAxis& axis : axes) {
    if (axis.name == name) return &axis.size;
  }
  return nullptr;
}

int Product(const std::vector<comm::MeshAxis>& axes) {
  int product = 1;
  for (const comm::MeshAxis& axis : axes) product *= axis.size;
  return product;
}

// Sizes as they are written: -1 for the remaining ranks, 1 for an axis that is not named.
absl::StatusOr<std::vector<comm::MeshAxis>> WrittenMesh(const std::string& mesh) {
  std::vector<comm::MeshAxis> axes = {{"dp_replicate", 0}, {"dp_shard", 0}, {"lp", 0}};
  int open = 0;
  for (const absl::string_view part : absl::StrSplit(mesh, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    int size = 0;
    if (sides.size() != 2 || !absl::SimpleAtoi(sides[1], &size) || size == 0 || size < -1) {
      return Invalid(mesh, kForm);
    }
    PLAIT_RETURN_IF_ERROR(CheckAxis(mesh, sides[0]));
    int* const axis = SizeOf(axes, sides[0]);
    if (*axis != 0) return Invalid(mesh, absl::StrCat(sides[0], " comes twice; ", kForm));
    *axis = size;
    open += size == -1 ? 1 : 0;
  }
  if (open > 1) return Invalid(mesh, "-1 for one axis at most");
  for (comm::MeshAxis& axis : axes) axis.size = axis.size == 0 ? 1 : axis.size;
  return axes;
}

absl::Status CheckSizes(const std::string& mesh, const std::vector<comm::MeshAxis>& axes, int ranks) {
  const int product = Product(axes);
  if (product == ranks) return absl::OkStatus();
  const std::string sizes = absl::StrJoin(
      axes, " x ", [](std::string* out, const comm::MeshAxis& axis) { absl::StrAppend(out, axis.size); });
  return Invalid(mesh, absl::StrCat(sizes, " = ", product, " ranks, but there are ", ranks,
                                    "; let the sizes multiply to it, or give --nproc=", product));
}

}  // namespace

absl::StatusOr<std::vector<comm::MeshAxis>> MeshOf(const std::string& mesh, const MeshOptions& options,
                                                   int ranks) {
  const bool ddp = options.strategy == parallel::Strategy::kDdp;
  const char* all = options.layer_parallel ? "lp" : ddp ? "dp_replicate" : "dp_shard";
  const std::string written = mesh.empty() ? absl::StrCat(all, "=", ranks) : mesh;
  PLAIT_ASSIGN_OR_RETURN(std::vector<comm::MeshAxis> axes, WrittenMesh(written));
  if (!options.layer_parallel) {
    if (axes.back().size != 1) {
      return Invalid(mesh,
                     "this program has no layer-parallel solver (lp); expected dp_replicate or dp_shard");
    }
    axes.pop_back();
  }
  for (comm::MeshAxis& axis : axes) {
    if (axis.size == -1) axis.size = std::max(1, ranks / -Product(axes));
  }
  PLAIT_RETURN_IF_ERROR(CheckSizes(mesh, axes, ranks));
  if (ddp && *SizeOf(axes, "dp_shard") > 1) {
    return Invalid(mesh,
                   "ddp keeps everything whole; expected dp_shard=1, or --strategy=zero1, zero2 or fsdp");
  }
  return axes;
}

absl::StatusOr<int> RanksToStart(int nproc, const std::string& mesh, int cores) {
  if (nproc > 0) return nproc;
  if (!mesh.empty()) {
    PLAIT_ASSIGN_OR_RETURN(const std::vector<comm::MeshAxis> axes, WrittenMesh(mesh));
    if (Product(axes) > 0) return Product(axes);
  }
  return std::clamp(cores, 1, kMostDefaultRanks);
}

absl::StatusOr<int> RanksOfRun(int nproc, const std::string& mesh, const comm::Launcher& launcher,
                               int cores) {
  if (!launcher.starts_mpi()) return RanksToStart(nproc, mesh, cores);
  if (nproc <= 0 || nproc == launcher.size) return launcher.size;
  return absl::InvalidArgumentError(absl::StrCat("--nproc=", nproc, ": a launcher has started ",
                                                 launcher.size, " ranks; leave --nproc out"));
}

}  // namespace plait::training
