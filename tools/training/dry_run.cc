#include "tools/training/dry_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "comm/counting/counted_job.h"
#include "parallel/pipeline/stage_split.h"
#include "parallel/plan/meta_kernels.h"
#include "parallel/plan/meta_memory.h"

namespace plait::training {
namespace {

using Axes = std::vector<comm::MeshAxis>;

int Product(const Axes& axes) {
  int product = 1;
  for (const comm::MeshAxis& axis : axes) product *= axis.size;
  return product;
}

std::map<std::string, int> GroupSizes(const Axes& axes) {
  std::map<std::string, int> sizes = {{parallel::kEndsAxis, 2}, {"data", 1}, {"losses", 1}};
  for (const comm::MeshAxis& axis : axes) {
    sizes[axis.name] = axis.size;
    const bool data = axis.name == "dp_replicate" || axis.name == "dp_shard";
    if (data) sizes["data"] *= axis.size;
    if (data || axis.name == "pp") sizes["losses"] *= axis.size;
  }
  return sizes;
}

// The coordinate of the rank that is run in place of one at `coordinate`.
int Representative(const comm::MeshAxis& axis, int coordinate) {
  if (axis.name == "dp_replicate" || axis.name == "dp_shard") return 0;
  const bool by_itself = axis.name == "pp" || coordinate + 1 == axis.size;
  return by_itself ? coordinate : 0;
}

comm::Stats Difference(comm::Stats now, const comm::Stats& before) {
  for (auto& [axis, operations] : now) {
    const auto then = before.find(axis);
    for (std::size_t i = 0; then != before.end() && i < operations.size(); ++i) {
      operations[i].calls -= then->second[i].calls;
      operations[i].payload_bytes -= then->second[i].payload_bytes;
      operations[i].wire_bytes -= then->second[i].wire_bytes;
    }
  }
  return now;
}

void TakeStep(ShardedModel& sharded, const DryRunModel& made) {
  const models::Batch batch = sharded.OnDevice(made.batch);
  sharded.RunMicroBatches([&batch](int) { return parallel::PipelineMicroBatch{.batch = batch}; });
  sharded.Step({.clip_norm = made.trained.clip_norm});
}

absl::StatusOr<DryRunRank> RunRank(const Settings& settings, const comm::DeviceMesh& mesh,
                                   const MakeDryRunModel& make) {
  parallel::RegisterMetaKernels();
  parallel::MetaMemory& memory = parallel::MetaMemory::Install();
  PLAIT_ASSIGN_OR_RETURN(const DryRunModel made, make(mesh));
  PLAIT_RETURN_IF_ERROR(SplitLayers(settings, mesh, *made.model));
  DryRunRank rank = {.rank = mesh.world().rank(), .coordinates = mesh.Coordinates(), .traffic = {}};
  PLAIT_ASSIGN_OR_RETURN(const parallel::MemoryPlan plan,
                         PlanMemory(settings, mesh, at::Device(at::kMeta), made.trained));
  rank.planned_bytes = made.trained.activation_bytes_per_sample < 0 ? -1 : plan.total_bytes();
  const std::int64_t before = memory.live_bytes();
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<ShardedModel> sharded,
                         ShardedModel::Create(settings, mesh, at::Device(at::kMeta), made.trained));
  rank.moment_bytes = sharded->optimizer().moment_bytes();
  rank.parameter_bytes = memory.live_bytes() - before - rank.moment_bytes;
  // The first step makes the buffers that stay, and tells ranks what they keep in mind.
  TakeStep(*sharded, made);
  const std::int64_t stays = memory.live_bytes();
  rank.gradient_bytes = stays - before - rank.moment_bytes - rank.parameter_bytes;
  memory.ForgetPeak();
  const comm::Stats counted = mesh.world().stats();
  TakeStep(*sharded, made);
  rank.traffic = Difference(mesh.world().stats(), counted);
  rank.activation_bytes = memory.peak_bytes() - stays;
  sharded->WaitForParameters();
  return rank;
}

}  // namespace

int RankToRun(const Axes& axes, int rank) {
  int rest = rank, representative = 0, stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    representative += stride * Representative(axes[i], rest % axes[i].size);
    rest /= axes[i].size;
    stride *= axes[i].size;
  }
  return representative;
}

comm::Communicator CountedWorld(const Axes& axes, int rank) {
  return comm::CountedJob(Product(axes), GroupSizes(axes)).World(rank);
}

absl::StatusOr<DryRunResult> DryRun(const Settings& settings, const Axes& axes, const MakeDryRunModel& make) {
  const auto begin = std::chrono::steady_clock::now();
  const comm::CountedJob job(Product(axes), GroupSizes(axes));
  DryRunResult result = {.axes = axes, .ranks = {}};
  std::map<int, int> ranks;  // by the rank that is run: how many it stands for
  for (int rank = 0; rank < Product(axes); ++rank) ++ranks[RankToRun(axes, rank)];
  for (const auto& [rank, alike] : ranks) {
    PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh, comm::DeviceMesh::Create(job.World(rank), axes));
    PLAIT_ASSIGN_OR_RETURN(DryRunRank one, RunRank(settings, mesh, make));
    one.alike = alike;
    result.ranks.push_back(std::move(one));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::string DryRunText(const DryRunResult& result) {
  std::vector<std::string> names;
  std::string text = absl::StrFormat("Dry run of a step on %d ranks: %d of them in %.1f s; bytes in MB\n",
                                     Product(result.axes), result.ranks.size(), result.seconds);
  absl::StrAppend(&text, absl::StrFormat("  %-24s %6s %11s %11s %11s %11s %11s %11s   %s\n", "rank", "alike",
                                         "parameters", "moments", "gradients", "activations", "peak", "planned",
                                         "sent in a step, by axis"));
  for (const DryRunRank& rank : result.ranks) {
    std::vector<std::string> place, sent;
    for (std::size_t i = 0; i < result.axes.size(); ++i) {
      if (result.axes[i].size > 1) place.push_back(absl::StrCat(result.axes[i].name, "=", rank.coordinates[i]));
    }
    for (const auto& [axis, operations] : rank.traffic) {
      std::int64_t bytes = 0;
      for (const comm::OperationStats& operation : operations) bytes += operation.wire_bytes;
      if (bytes > 0) sent.push_back(absl::StrFormat("%s %.3f", axis, 1e-6 * static_cast<double>(bytes)));
    }
    const auto mb = [](std::int64_t bytes) { return absl::StrFormat("%11.3f", 1e-6 * static_cast<double>(bytes)); };
    absl::StrAppend(&text,
                    absl::StrFormat("  %-24s %6d %s %s %s %s %s %s   %s\n",
                                    absl::StrCat(rank.rank, " ", absl::StrJoin(place, ",")), rank.alike,
                                    mb(rank.parameter_bytes), mb(rank.moment_bytes), mb(rank.gradient_bytes),
                                    mb(rank.activation_bytes), mb(rank.peak_bytes()), mb(rank.planned_bytes),
                                    absl::StrJoin(sent, ", ")));
  }
  return text;
}

}  // namespace plait::training
