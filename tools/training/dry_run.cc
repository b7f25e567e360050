#include "tools/training/dry_run.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "comm/counting/counted_job.h"
#include "parallel/context/data_mesh.h"
#include "parallel/moe/expert_mesh.h"
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

// Sizes of all groups: the axes, and the groups that programs and engines derive from them (program.cc,
// context_parallel::DataMesh).
comm::CountedJob::GroupSizes GroupSizes(const Axes& axes, const Settings& settings) {
  const parallel::Strategy strategy = settings.parsed_strategy();
  int data = 1, losses = 1, cp = 1;
  comm::CountedJob::GroupSizes sizes;
  for (const comm::MeshAxis& axis : axes) {
    sizes[axis.name] = {axis.size};
    data *= axis.name == "dp_replicate" || axis.name == "dp_shard" ? axis.size : 1;
    losses *= axis.name == "tp" || axis.name == "lp" ? 1 : axis.size;
    cp *= axis.name == "cp" ? axis.size : 1;
  }
  std::vector<int>& with_cp = sizes[context_parallel::DataAxis(strategy)];
  if (cp > 1) with_cp.push_back(cp * with_cp[0]);
  // Of experts (moe::ExpertMesh).
  const bool shards = strategy != parallel::Strategy::kDdp;
  const auto ranks_along = [&axes](const char* name) {
    for (const comm::MeshAxis& axis : axes) {
      if (axis.name == name) return axis.size;
    }
    return 1;
  };
  const int ep = settings.expert_ranks();
  const moe::ExpertAxes experts = moe::ExpertAxesOf(ranks_along("dp_replicate") * (shards ? 1 : cp),
                                                    ranks_along("dp_shard") * (shards ? cp : 1), ep)
                                      .value_or(moe::ExpertAxes{});
  sizes["tokens"] = {data * cp};
  sizes["ep"] = {ep};
  sizes["ep_replicate"] = {experts.replicate};
  sizes["ep_shard"] = {experts.shard};
  sizes[parallel::kEndsAxis] = {2};
  sizes["data"] = {data};
  sizes["losses"] = {losses};
  return sizes;
}

// The coordinate along `axis` of the rank that is run for one at `coordinate`. The last data rank is the last one along
// ep, which has the most experts (moe::ExpertPlacement).
int Representative(const comm::MeshAxis& axis, int expert_ranks, int coordinate) {
  if (axis.name == "dp_replicate" || axis.name == "dp_shard") return expert_ranks > 1 ? axis.size - 1 : 0;
  const bool by_itself = axis.name == "pp" || axis.name == "lp" || coordinate + 1 == axis.size;
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

absl::StatusOr<DryRunModel> Make(const Settings& settings, const comm::DeviceMesh& mesh,
                                 const MakeDryRunModel& make, std::int64_t samples) {
  const parallel::MetaMemory::Uncounted uncounted;
  PLAIT_ASSIGN_OR_RETURN(DryRunModel made, make(samples));
  PLAIT_RETURN_IF_ERROR(SplitLayers(settings, mesh, made.trained));
  return made;
}

// What counted ranks run, each by itself.
struct Job {
  Job(const Settings& of_run, const Axes& of_mesh, const MakeDryRunModel& of_program)
      : settings(of_run),
        axes(of_mesh),
        make(of_program),
        steps(Product(axes), GroupSizes(axes, settings)),
        tests(Product(axes), GroupSizes(axes, settings)) {}

  const Settings& settings;
  const Axes& axes;
  const MakeDryRunModel& make;
  // Two jobs: a rank receives the latest shapes that were sent in its job, and those of steps and tests differ.
  comm::CountedJob steps, tests;
};

absl::StatusOr<DryRunRank> TakeSteps(const Job& job, int number, std::int64_t samples) {
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh,
                         comm::DeviceMesh::Create(job.steps.World(number), job.axes));
  parallel::MetaMemory& memory = parallel::MetaMemory::Install();
  PLAIT_ASSIGN_OR_RETURN(const DryRunModel made, Make(job.settings, mesh, job.make, samples));
  DryRunRank rank = {.rank = number, .coordinates = mesh.Coordinates(), .traffic = {}};
  const std::int64_t before = memory.live_bytes();
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<ShardedModel> sharded,
                         ShardedModel::Create(job.settings, mesh, at::Device(at::kMeta), made.trained));
  rank.moment_bytes = sharded->optimizer().moment_bytes();
  rank.parameter_bytes = memory.live_bytes() - before - rank.moment_bytes;
  // The first step allocates persistent buffers and exchanges what ranks cache.
  TakeStep(*sharded, made);
  const std::int64_t stays = memory.live_bytes();
  rank.gradient_bytes = stays - before - rank.moment_bytes - rank.parameter_bytes;
  memory.ForgetPeak();
  const comm::Stats counted = mesh.world().stats();
  TakeStep(*sharded, made);
  rank.traffic = Difference(mesh.world().stats(), counted);
  rank.activation_bytes = memory.peak_bytes() - stays;
  rank.evaluation_samples = made.trained.evaluation_samples;
  sharded->WaitForParameters();
  return rank;
}

// Bytes of a forward pass beyond those that live between steps.
absl::StatusOr<std::int64_t> TakeTest(const Job& job, int number, std::int64_t samples) {
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh,
                         comm::DeviceMesh::Create(job.tests.World(number), job.axes));
  parallel::MetaMemory& memory = parallel::MetaMemory::Install();
  PLAIT_ASSIGN_OR_RETURN(const DryRunModel made, Make(job.settings, mesh, job.make, samples));
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<ShardedModel> sharded,
                         ShardedModel::Create(job.settings, mesh, at::Device(at::kMeta), made.trained));
  sharded->model().SetTraining(false);
  const std::int64_t before = memory.live_bytes(), buffers_before = sharded->engine().peak_bytes();
  memory.ForgetPeak();
  sharded->Output(made.batch);
  // In training the buffers of unsharded units are there already.
  const std::int64_t buffers = sharded->engine().peak_bytes() - buffers_before;
  sharded->WaitForParameters();
  return memory.peak_bytes() - before - buffers;
}

// The first line of LibTorch's message; a shorter one for a missing meta kernel, where LibTorch's is advice for users
// of torch.compile.
std::string WhyNot(const std::string& message) {
  const std::size_t name = message.find(": attempted to run this operator with Meta tensors");
  if (name == std::string::npos) return message.substr(0, message.find('\n'));
  return message.substr(0, name) +
         " has no kernel for the meta device (parallel/plan/meta_kernels.cc registers such kernels)";
}

// Unimplemented where LibTorch lacks an operator on the meta device.
absl::StatusOr<DryRunRank> RunRank(const Job& job, int number, std::int64_t samples, bool with_test = true) {
  parallel::RegisterMetaKernels();
  try {
    PLAIT_ASSIGN_OR_RETURN(DryRunRank rank, TakeSteps(job, number, samples));
    if (!with_test || rank.evaluation_samples == 0) return rank;
    PLAIT_ASSIGN_OR_RETURN(rank.evaluation_bytes, TakeTest(job, number, rank.evaluation_samples));
    return rank;
  } catch (const c10::Error& error) {
    return absl::UnimplementedError("no dry run: " + WhyNot(error.what_without_backtrace()));
  }
}

// The ranks with the same coordinates, but any along `name`, in order.
std::vector<int> GroupAlong(const Axes& axes, const std::string& name, int rank) {
  int stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (axes[i].name != name) {
      stride *= axes[i].size;
      continue;
    }
    std::vector<int> ranks;
    for (int at = 0; at < axes[i].size; ++at)
      ranks.push_back(rank + (at - rank / stride % axes[i].size) * stride);
    return ranks;
  }
  return {rank};
}

// Runs this rank, and before it the ranks that send the shapes that it receives: the one with the first stage, or all
// with earlier layers, as the first may have none.
absl::StatusOr<DryRunRank> RunOne(const Settings& settings, const comm::DeviceMesh& real,
                                  const MakeDryRunModel& make, std::int64_t samples, bool with_test) {
  const Axes& axes = real.axes();
  const Job job(settings, axes, make);
  const int rank = real.world().rank();
  for (const int sender : GroupAlong(axes, "lp", GroupAlong(axes, "pp", rank).front())) {
    if (sender == rank) break;
    PLAIT_RETURN_IF_ERROR(RunRank(job, sender, samples, with_test));
  }
  return RunRank(job, rank, samples, with_test);
}

}  // namespace

int RankToRun(const Axes& axes, int expert_ranks, int rank) {
  int rest = rank, representative = 0, stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    representative += stride * Representative(axes[i], expert_ranks, rest % axes[i].size);
    rest /= axes[i].size;
    stride *= axes[i].size;
  }
  return representative;
}

comm::Communicator CountedWorld(const Settings& settings, const Axes& axes, int rank) {
  return comm::CountedJob(Product(axes), GroupSizes(axes, settings)).World(rank);
}

absl::StatusOr<DryRunResult> DryRun(const Settings& settings, const Axes& axes, const MakeDryRunModel& make) {
  const auto begin = std::chrono::steady_clock::now();
  const Job job(settings, axes, make);
  DryRunResult result = {.axes = axes, .ranks = {}};
  const std::int64_t samples = settings.SamplesPerRank(DataRanks(axes));
  std::map<int, int> ranks;  // by the rank that is run: how many it stands for
  for (int rank = 0; rank < Product(axes); ++rank) ++ranks[RankToRun(axes, settings.expert_ranks(), rank)];
  for (const auto& [rank, alike] : ranks) {
    PLAIT_ASSIGN_OR_RETURN(DryRunRank one, RunRank(job, rank, samples));
    one.alike = alike;
    result.ranks.push_back(std::move(one));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

absl::StatusOr<parallel::MemoryPlan> PlanByDryRun(const Settings& settings, const comm::DeviceMesh& mesh,
                                                  at::Device device, const TrainedModel& trained,
                                                  const MakeDryRunModel& make) {
  PLAIT_ASSIGN_OR_RETURN(parallel::MemoryPlanRequest request, MemoryRequest(settings, mesh, device, trained));
  PLAIT_ASSIGN_OR_RETURN(const DryRunRank all,
                         RunOne(settings, mesh, make, request.micro_batch, /*with_test=*/true));
  request.evaluation_bytes = all.evaluation_bytes;
  request.activation_bytes_per_sample = all.activation_bytes / std::max<std::int64_t>(request.micro_batch, 1);
  if (request.micro_batch > 1) {
    PLAIT_ASSIGN_OR_RETURN(const DryRunRank one,
                           RunOne(settings, mesh, make, /*samples=*/1, /*with_test=*/false));
    request.activation_bytes_per_sample =
        (all.activation_bytes - one.activation_bytes) / (request.micro_batch - 1);
  }
  request.fixed_activation_bytes =
      all.activation_bytes - request.micro_batch * request.activation_bytes_per_sample;
  if (settings.offload != "none") return parallel::PlanMemory(request);
  request.working_bytes = 0;
  const std::int64_t planned = parallel::PlanMemory(request).buffer_bytes();
  request.working_bytes = std::max<std::int64_t>(0, all.parameter_bytes + all.gradient_bytes - planned);
  parallel::MemoryPlan plan = parallel::PlanMemory(request);
  plan.moment_bytes = all.moment_bytes;
  return plan;
}

absl::Status CheckFits(const DryRunResult& result, const parallel::NodeMemory& limit) {
  const auto most =
      std::max_element(result.ranks.begin(), result.ranks.end(),
                       [](const auto& a, const auto& b) { return a.peak_bytes() < b.peak_bytes(); });
  if (limit.bytes < 0 || most->peak_bytes() <= limit.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("rank %d needs %.3f GB, but only %.3f GB are available (%s)", most->rank,
                      1e-9 * static_cast<double>(most->peak_bytes()), 1e-9 * static_cast<double>(limit.bytes),
                      limit.limited_by));
}

std::string DryRunText(const DryRunResult& result) {
  std::vector<std::string> names;
  std::string text = absl::StrFormat("Dry run of a step on %d ranks: %d of them in %.1f s; bytes in MB\n",
                                     Product(result.axes), result.ranks.size(), result.seconds);
  absl::StrAppend(
      &text, absl::StrFormat("  %-24s %6s %11s %11s %11s %11s %11s   %s\n", "rank", "alike", "parameters",
                             "moments", "gradients", "activations", "peak", "sent in a step, by axis"));
  for (const DryRunRank& rank : result.ranks) {
    std::vector<std::string> place, sent;
    for (std::size_t i = 0; i < result.axes.size(); ++i) {
      if (result.axes[i].size > 1)
        place.push_back(absl::StrCat(result.axes[i].name, "=", rank.coordinates[i]));
    }
    for (const auto& [axis, operations] : rank.traffic) {
      std::int64_t bytes = 0;
      for (const comm::OperationStats& operation : operations) bytes += operation.wire_bytes;
      if (bytes > 0) sent.push_back(absl::StrFormat("%s %.3f", axis, 1e-6 * static_cast<double>(bytes)));
    }
    const auto mb = [](std::int64_t bytes) {
      return absl::StrFormat("%11.3f", 1e-6 * static_cast<double>(bytes));
    };
    absl::StrAppend(&text, absl::StrFormat("  %-24s %6d %s %s %s %s %s   %s\n",
                                           absl::StrCat(rank.rank, " ", absl::StrJoin(place, ",")),
                                           rank.alike, mb(rank.parameter_bytes), mb(rank.moment_bytes),
                                           mb(rank.gradient_bytes), mb(rank.most_activation_bytes()),
                                           mb(rank.peak_bytes()), absl::StrJoin(sent, ", ")));
  }
  return text;
}

}  // namespace plait::training
