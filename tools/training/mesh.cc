#include "tools/training/mesh.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "parallel/moe/expert_mesh.h"

namespace plait::training {
namespace {

constexpr char kForm[] = "expected axes and sizes such as dp_replicate=2,dp_shard=2";

// Every axis, in the order of the mesh, and the feature it stands for in messages. Axes that communicate most vary
// fastest, so that their ranks are neighbours.
constexpr std::pair<const char*, const char*> kAxes[] = {{"pp", "pipeline parallelism"},
                                                         {"dp_replicate", ""},
                                                         {"dp_shard", ""},
                                                         {"cp", "context parallelism"},
                                                         {"lp", "layer-parallel solver"},
                                                         {"tp", "tensor parallelism"},
                                                         {"ep", "expert parallelism"}};

absl::Status Invalid(const std::string& mesh, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--mesh=", mesh, ": ", what));
}

int* SizeOf(std::vector<comm::MeshAxis>& axes, absl::string_view name) {
  for (comm::MeshAxis& axis : axes) {
    if (axis.name == name) return &axis.size;
  }
  return nullptr;
}

// Number of ranks: ep is a view of the data ranks and has none of its own.
int Product(const std::vector<comm::MeshAxis>& axes) {
  int product = 1;
  for (const comm::MeshAxis& axis : axes) product *= axis.name == "ep" ? 1 : axis.size;
  return product;
}

// Sizes of all axes as they are written: -1 for the remaining ranks, 1 for an axis that is not named.
absl::StatusOr<std::vector<comm::MeshAxis>> WrittenMesh(const std::string& mesh) {
  std::vector<comm::MeshAxis> axes;
  for (const auto& [name, what] : kAxes) axes.push_back({name, 0});
  int open = 0;
  std::int64_t ranks = 1;
  for (const absl::string_view part : absl::StrSplit(mesh, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    int size = 0;
    if (sides.size() != 2 || !absl::SimpleAtoi(sides[1], &size) || size == 0 || size < -1) {
      return Invalid(mesh, kForm);
    }
    if (sides[0] == "ep" && size < 0) return Invalid(mesh, "ep=-1: expected a number of ranks");
    int* const axis = SizeOf(axes, sides[0]);
    if (axis == nullptr) return Invalid(mesh, absl::StrCat("no axis \"", sides[0], "\"; ", kForm));
    if (*axis != 0) return Invalid(mesh, absl::StrCat(sides[0], " comes twice; ", kForm));
    *axis = size;
    ranks *= size == -1 ? 1 : size;
    if (ranks > std::numeric_limits<int>::max()) return Invalid(mesh, "more ranks than can be counted");
    open += size == -1 ? 1 : 0;
  }
  if (open > 1) return Invalid(mesh, "-1 for one axis at most");
  for (comm::MeshAxis& axis : axes) axis.size = axis.size == 0 ? 1 : axis.size;
  return axes;
}

// The axes that a program has, of all that can be written.
absl::StatusOr<std::vector<comm::MeshAxis>> AxesOfProgram(const std::string& mesh,
                                                          const std::vector<comm::MeshAxis>& written,
                                                          const std::vector<std::string>& further) {
  std::vector<comm::MeshAxis> axes;
  std::string lacks;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const std::string& name = written[i].name;
    const char* what = kAxes[i].second;
    if (*what == '\0' || std::find(further.begin(), further.end(), name) != further.end()) {
      axes.push_back(written[i]);
    } else if (written[i].size != 1 && lacks.empty()) {
      lacks = absl::StrCat("this program has no ", what, " (", name, "); expected ");
    }
  }
  if (lacks.empty()) return axes;
  const std::string names = absl::StrJoin(
      axes, " or ", [](std::string* out, const comm::MeshAxis& axis) { out->append(axis.name); });
  return Invalid(mesh, lacks + names);
}

absl::Status CheckSizes(const std::string& mesh, const std::vector<comm::MeshAxis>& axes, int ranks) {
  const int product = Product(axes);
  if (product == ranks) return absl::OkStatus();
  std::vector<int> sizes;
  for (const comm::MeshAxis& axis : axes) {
    if (axis.size > 1 && axis.name != "ep") sizes.push_back(axis.size);
  }
  const std::string factors = sizes.size() < 2 ? "" : absl::StrCat(absl::StrJoin(sizes, " x "), " = ");
  return Invalid(mesh, absl::StrCat(factors, product, " ranks, but there are ", ranks,
                                    "; let the sizes multiply to it, or give --nproc=", product));
}

// Checks ep against the data ranks and removes it from the axes.
absl::Status TakeExpertRanks(const std::string& mesh, const MeshOptions& options,
                             std::vector<comm::MeshAxis>& axes) {
  const int* const ep = SizeOf(axes, "ep");
  if (ep == nullptr) return absl::OkStatus();
  const auto size = [&axes](const char* name) {
    return SizeOf(axes, name) == nullptr ? 1 : *SizeOf(axes, name);
  };
  const bool ddp = options.strategy == parallel::Strategy::kDdp;
  const int replicate = size("dp_replicate") * (ddp ? size("cp") : 1);
  const int shard = size("dp_shard") * (ddp ? 1 : size("cp"));
  const absl::Status fits = moe::ExpertAxesOf(replicate, shard, *ep).status();
  std::erase_if(axes, [](const comm::MeshAxis& axis) { return axis.name == "ep"; });
  return fits.ok() ? fits : Invalid(mesh, fits.message());
}

}  // namespace

int ExpertRanks(const std::string& mesh) {
  if (mesh.empty()) return 1;
  absl::StatusOr<std::vector<comm::MeshAxis>> axes = WrittenMesh(mesh);
  return axes.ok() ? *SizeOf(*axes, "ep") : 1;
}

absl::StatusOr<std::vector<comm::MeshAxis>> MeshOf(const std::string& mesh, const MeshOptions& options,
                                                   int ranks) {
  const bool ddp = options.strategy == parallel::Strategy::kDdp;
  const std::string data = ddp ? "dp_replicate" : "dp_shard";
  const std::string& all = options.default_axis.empty() ? data : options.default_axis;
  PLAIT_ASSIGN_OR_RETURN(const std::vector<comm::MeshAxis> written,
                         WrittenMesh(mesh.empty() ? absl::StrCat(all, "=", ranks) : mesh));
  PLAIT_ASSIGN_OR_RETURN(std::vector<comm::MeshAxis> axes, AxesOfProgram(mesh, written, options.axes));
  for (comm::MeshAxis& axis : axes) {
    if (axis.size == -1) axis.size = std::max(1, ranks / -Product(axes));
  }
  PLAIT_RETURN_IF_ERROR(CheckSizes(mesh, axes, ranks));
  PLAIT_RETURN_IF_ERROR(TakeExpertRanks(mesh, options, axes));
  if (ddp && *SizeOf(axes, "dp_shard") > 1) {
    return Invalid(mesh,
                   "ddp replicates everything; expected dp_shard=1, or --strategy=zero1, zero2 or fsdp");
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
