#include "parallel/moe/expert_mesh.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::moe {

absl::StatusOr<ExpertAxes> ExpertAxesOf(int dp_replicate, int dp_shard, int ep) {
  const int ranks = dp_replicate * dp_shard;
  if (ep >= 1 && dp_shard % ep == 0) return ExpertAxes{.replicate = dp_replicate, .shard = dp_shard / ep};
  if (ep >= 1 && ep % dp_shard == 0 && ranks % ep == 0)
    return ExpertAxes{.replicate = ranks / ep, .shard = 1};
  return absl::InvalidArgumentError(absl::StrCat(
      "ep=", ep, " for dp_replicate=", dp_replicate, " and dp_shard=", dp_shard,
      " (with cp); expected a divisor of the ranks along dp_shard, or a multiple of them that divides all ",
      ranks, " data ranks"));
}

absl::StatusOr<comm::DeviceMesh> ExpertMesh(const comm::DeviceMesh& data_mesh, int ep) {
  std::vector<std::string> axes;
  int replicate = 1, shard = 1;
  if (data_mesh.Has("dp_replicate")) {
    axes.push_back("dp_replicate");
    replicate = data_mesh.axis("dp_replicate").size();
  }
  if (data_mesh.Has("dp_shard")) {
    axes.push_back("dp_shard");
    shard = data_mesh.axis("dp_shard").size();
  }
  if (axes.empty())
    return absl::InvalidArgumentError("a mesh with neither dp_replicate nor dp_shard for experts");
  PLAIT_ASSIGN_OR_RETURN(const ExpertAxes sizes, ExpertAxesOf(replicate, shard, ep));
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh tokens,
                         data_mesh.WithView(axes, {{"tokens", replicate * shard}}));
  return tokens.WithView(axes, {{"ep_replicate", sizes.replicate}, {"ep_shard", sizes.shard}, {"ep", ep}});
}

}  // namespace plait::moe
