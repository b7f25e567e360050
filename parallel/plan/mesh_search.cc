#include "parallel/plan/mesh_search.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "parallel/plan/pass_memory.h"
#include "parallel/plan/rank_memory.h"

namespace plait::parallel {
namespace {

std::vector<int> Divisors(int number) {
  std::vector<int> divisors;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

class Estimator {
 public:
  Estimator(const PlannedModel& model, const Cluster& cluster)
      : model_(model), cluster_(cluster), passes_(model) {}

  absl::StatusOr<Estimate> Of(const PlannedRun& run) {
    PLAIT_ASSIGN_OR_RETURN(const Pipeline* const pipeline, PipelineOf(run));
    const StepPlan& plan = pipeline->plan;
    PLAIT_ASSIGN_OR_RETURN(const PassBytes* const bytes, passes_.Of(run));
    Estimate estimate = {.run = run, .memory = {}, .time = {}, .traffic = {}};
    std::vector<StateCalls> states;
    for (const int rank : RanksThatDiffer(plan)) {
      states.push_back(StateCallsOf(plan, {.pp = rank}));
      const MemoryPlan memory = RankMemory(plan, rank, *bytes);
      if (memory.total_bytes() > estimate.memory.total_bytes() || states.size() == 1)
        estimate.memory = memory;
    }
    estimate.time = TimeOf(plan, *bytes, states, pipeline->seconds, cluster_);
    estimate.fits = static_cast<double>(estimate.memory.total_bytes()) <= cluster_.memory_bytes;
    return estimate;
  }

  // After the first few, all micro-batches take the same time: long steps are extrapolated from two short ones.
  absl::StatusOr<Estimate> OfManyPasses(const PlannedRun& run) {
    const int passes = run.micro_batches, some = 4 * run.mesh.pp;
    if (passes <= some || run.schedule == ScheduleKind::kGpipe) return Of(run);
    // The short steps may have a schedule where the long one has none: interleaved needs a multiple of pp.
    const int alike = some + passes % run.mesh.pp;
    PLAIT_RETURN_IF_ERROR(
        MakeSchedule(run.schedule, {.ranks = run.mesh.pp, .chunks = run.chunks, .micro_batches = alike})
            .status());
    PLAIT_ASSIGN_OR_RETURN(const Estimate fewer, Of(WithPasses(run, some / 2)));
    PLAIT_ASSIGN_OR_RETURN(Estimate estimate, Of(WithPasses(run, some)));
    estimate.run = run;
    const auto lengthen = [&](double StepTime::*term) {
      double& at_end = estimate.time.*term;
      at_end += (at_end - fewer.time.*term) * (passes - some) / (some - some / 2);
    };
    for (const auto term :
         {&StepTime::products, &StepTime::activations, &StepTime::calls, &StepTime::gradients, &StepTime::tp,
          &StepTime::cp, &StepTime::gathers, &StepTime::pipeline, &StepTime::reductions, &StepTime::shared}) {
      lengthen(term);
    }
    return estimate;
  }

 private:
  static PlannedRun WithPasses(PlannedRun run, int passes) {
    run.micro_batches = passes;
    return run;
  }

  // What many candidates have in common.
  struct Pipeline {
    StepPlan plan;
    double seconds = 0;
  };
  absl::StatusOr<const Pipeline*> PipelineOf(const PlannedRun& run) {
    const std::tuple mesh = {run.mesh.pp, run.mesh.cp, run.mesh.tp};
    if (mesh != mesh_) pipelines_.clear();
    mesh_ = mesh;
    const std::pair key = {run.micro_batches, run.micro_batch};
    auto found = pipelines_.find(key);
    if (found == pipelines_.end()) {
      PLAIT_ASSIGN_OR_RETURN(StepPlan plan, StepPlan::Make(model_, run));
      PLAIT_ASSIGN_OR_RETURN(const PassBytes* const bytes, passes_.Of(run));
      const double seconds = PipelineSeconds(plan, *bytes, cluster_);
      found = pipelines_.emplace(key, Pipeline{std::move(plan), seconds}).first;
    }
    found->second.plan.run = run;
    return &found->second;
  }

  const PlannedModel& model_;
  const Cluster& cluster_;
  PassMemory passes_;
  std::tuple<int, int, int> mesh_;  // that the pipelines are of
  std::map<std::pair<int, std::int64_t>, Pipeline> pipelines_;
};

absl::Status CheckRate(const PlannedRun& run, const Cluster& cluster) {
  if (cluster.flops.count(TypeName(run.compute_type)) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the cluster's file has no compute { type: \"", TypeName(run.compute_type), "\" ... }"));
}

bool IsBetter(const Estimate& a, const Estimate& b) {
  if (a.fits != b.fits) return a.fits;
  if (a.fits) return a.time.total() < b.time.total();
  return a.memory.total_bytes() < b.memory.total_bytes();
}

// Samples of a micro-batch: powers of two that divide a data rank's samples, and all of them.
std::vector<std::int64_t> MicroBatches(std::int64_t samples) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < samples; size *= 2) {
    if (samples % size == 0) sizes.push_back(size);
  }
  sizes.push_back(samples);
  return sizes;
}

std::vector<MeshSizes> Meshes(const PlannedModel& model, int ranks, int largest_tp) {
  std::vector<MeshSizes> meshes;
  for (const int tp : Divisors(ranks)) {
    if (tp > largest_tp) continue;
    for (const int cp : Divisors(ranks / tp)) {
      for (const int pp : Divisors(ranks / tp / cp)) {
        const MeshSizes split = {.pp = pp, .cp = cp, .tp = tp};
        const bool padded = cp > 1 && model.sequence % (2 * cp) != 0;
        if (padded || !CheckSplit(model, split, false).ok()) continue;
        const int data = ranks / tp / cp / pp;
        for (const int shard : Divisors(data)) meshes.push_back({pp, data / shard, shard, cp, tp});
      }
    }
  }
  return meshes;
}

bool Takes(Strategy strategy, const MeshSizes& mesh) {
  return strategy == Strategy::kDdp ? mesh.dp_shard == 1 : mesh.dp_shard * mesh.cp > 1;
}

std::string NamesOf(const std::vector<Strategy>& strategies) {
  return absl::StrJoin(strategies, " or ",
                       [](std::string* out, Strategy strategy) { absl::StrAppend(out, Name(strategy)); });
}

}  // namespace

absl::StatusOr<Estimate> EstimateOf(const PlannedModel& model, const PlannedRun& run,
                                    const Cluster& cluster) {
  PLAIT_RETURN_IF_ERROR(CheckRate(run, cluster));
  PLAIT_ASSIGN_OR_RETURN(Estimate estimate, Estimator(model, cluster).Of(run));
  PLAIT_ASSIGN_OR_RETURN(const StepPlan plan, StepPlan::Make(model, run));
  estimate.traffic = TrafficOf(plan, {});
  return estimate;
}

absl::StatusOr<std::vector<Estimate>> Search(const PlannedModel& model, const PlannedRun& base,
                                             const SearchOptions& options, const Cluster& cluster) {
  if (options.samples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a search with ", options.samples, " samples per step; expected at least 1"));
  }
  const int ranks = options.ranks > 0 ? options.ranks : cluster.ranks();
  const int largest_tp = options.largest_tp > 0 ? options.largest_tp : cluster.ranks_per_node;
  std::vector<Strategy> strategies = options.strategies;
  if (strategies.empty()) strategies = {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp};
  PLAIT_RETURN_IF_ERROR(CheckRate(base, cluster));
  Estimator estimator(model, cluster);
  std::vector<Estimate> estimates;
  for (const MeshSizes& mesh : Meshes(model, ranks, largest_tp)) {
    if (options.samples % mesh.data_ranks() != 0) continue;
    for (const Strategy strategy : strategies) {
      if (!Takes(strategy, mesh)) continue;
      for (const std::int64_t size : MicroBatches(options.samples / mesh.data_ranks())) {
        const std::int64_t micro_batches = options.samples / mesh.data_ranks() / size;
        if (micro_batches > std::numeric_limits<int>::max()) continue;
        PlannedRun run = base;
        run.mesh = mesh;
        run.strategy = strategy;
        run.micro_batch = size;
        run.micro_batches = static_cast<int>(micro_batches);
        run.sequence_parallel = mesh.tp > 1 && CheckSplit(model, mesh, true).ok();
        if (run.micro_batches < mesh.pp) continue;  // stages that never work at the same time
        absl::StatusOr<Estimate> estimate = estimator.OfManyPasses(run);
        if (estimate.ok() && !estimate->fits && run.micro_batches > 1 && ShardsGradients(strategy)) {
          run.reduce_each_micro_batch = true;
          estimate = estimator.OfManyPasses(run);
        }
        if (estimate.ok()) estimates.push_back(*std::move(estimate));
      }
    }
  }
  if (estimates.empty()) {
    const std::string with =
        options.strategies.empty() ? "" : absl::StrCat(" with ", NamesOf(options.strategies));
    return absl::InvalidArgumentError(
        absl::StrCat("no mesh of ", ranks, " ranks", with, " can split ", options.samples,
                     " samples per step and this model; give a number of samples that more ranks divide, ",
                     with.empty() ? "or fewer ranks" : "fewer ranks, or another strategy"));
  }
  std::stable_sort(estimates.begin(), estimates.end(), IsBetter);
  return estimates;
}

}  // namespace plait::parallel
