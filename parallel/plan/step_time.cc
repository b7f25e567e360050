#include "parallel/plan/step_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "parallel/pipeline/simulator.h"

namespace plait::parallel {
namespace {

using comm::Operation;

// Share of layers split by columns in the FLOPs of a block's weight gradients: these products hide the reduction of the
// input's gradient.
constexpr double kColumnShare = 0.5;
constexpr double kForwardShare =
    1.0 / 3;  // of a product's FLOPs; the input's and the weight's gradient are as much

double BytesOf(at::ScalarType type) { return static_cast<double>(c10::elementSize(type)); }

// Distance in ranks between neighbours along an axis.
int StrideOf(const PlannedRun& run, Axis axis) {
  const MeshSizes& mesh = run.mesh;
  const bool ddp = run.strategy == Strategy::kDdp;
  switch (axis) {
    case Axis::kTp:
      return 1;
    case Axis::kCp:
      return mesh.tp;
    case Axis::kShard:  // with cp
      return mesh.tp;
    case Axis::kReplicate:
      return ddp ? mesh.tp : mesh.tp * mesh.cp * mesh.dp_shard;
    case Axis::kPp:
      return mesh.ranks() / mesh.pp;
    case Axis::kEnds:
      return mesh.ranks() / mesh.pp * (mesh.pp - 1);
  }
  return 1;
}

// Of the ranks a <= r < b, numbered from the first of a block of `size` times `stride`: how many of the block's groups, the
// ranks with one r % stride, have ranks among them, but not all.
int GroupsThatLeave(int a, int b, int stride, int size) {
  const int with_ranks = std::min(b - a, stride);
  const int last_whole = std::min(b - 1 - (size - 1) * stride, stride - 1);
  return with_ranks - std::max(0, last_whole - a + 1);
}

// The most groups of an axis that share a node's link to others. The axis's groups fill blocks of neighbouring ranks.
int GroupsOnLink(int ranks, int node, int stride, int size) {
  const int block = stride * size;
  if (node % block == 0) return 0;
  if (block % node == 0) return std::min(node, stride);
  const int nodes = std::min((ranks + node - 1) / node, block / std::gcd(block, node));  // then it repeats
  int most = 0;
  for (int n = 0; n < nodes; ++n) {
    const int begin = n * node, end = std::min(begin + node, ranks);
    int leave = 0;
    for (int of_block = begin / block * block; of_block < end; of_block += block) {
      leave += GroupsThatLeave(std::max(begin - of_block, 0), std::min(end - of_block, block), stride, size);
    }
    most = std::max(most, leave);
  }
  return most;
}

// The link between the ranks of an axis.
Link LinkOf(const PlannedRun& run, Axis axis, const Cluster& cluster) {
  const int ranks = run.mesh.ranks(), node = std::min(cluster.ranks_per_node, ranks);
  if (node == ranks) return cluster.within_node;
  const int stride = StrideOf(run, axis), size = SizeOf(run, axis);
  // The ends of a pipeline are pairs of ranks of the first and the last stage, on different nodes.
  const int sharing =
      axis == Axis::kEnds ? std::min(node, ranks / run.mesh.pp) : GroupsOnLink(ranks, node, stride, size);
  if (sharing == 0) return cluster.within_node;
  const double share = cluster.between_nodes.bytes_per_second / sharing;
  const bool has_neighbours = stride < node;
  return {has_neighbours ? std::min(share, cluster.within_node.bytes_per_second) : share,
          cluster.between_nodes.latency_seconds};
}

double StepsOf(Operation operation, int ranks) {
  const double depth = std::ceil(std::log2(static_cast<double>(ranks)));
  switch (operation) {
    case Operation::kSend:
      return 1;
    case Operation::kAllReduce:
      return 2 * depth;
    case Operation::kAllToAll:
      return ranks - 1;
    default:
      return depth;
  }
}

// A pass over a stage on a rank, once.
struct Pass {
  double products = 0, activations = 0, calls = 0, gradients = 0, tp = 0, cp = 0;
  double total() const { return products + activations + calls + gradients + tp + cp; }
  Pass& operator+=(const Pass& p) {
    products += p.products;
    activations += p.activations;
    calls += p.calls;
    gradients += p.gradients;
    tp += p.tp;
    cp += p.cp;
    return *this;
  }
};

class Times {
 public:
  Times(const StepPlan& plan, const PassBytes& bytes, const Cluster& cluster)
      : plan_(plan), bytes_(bytes), cluster_(cluster), mesh_(plan.run.mesh) {}

  std::vector<Pass> OfStages() const {
    Pass block = OfPart(plan_.model.block_flops, bytes_.block, BlockCalls(plan_));
    block.calls = cluster_.block_seconds;
    std::vector<Pass> passes;
    for (const StageRange& stage : plan_.stages) {
      Pass pass;
      for (int i = 0; i < stage.count; ++i) pass += block;
      const PlannedModel& m = plan_.model;
      if (stage.prologue) pass += OfPart(m.prologue_flops, bytes_.prologue, PrologueCalls(plan_));
      if (stage.epilogue) pass += OfPart(m.epilogue_flops, bytes_.epilogue, EpilogueCalls(plan_));
      passes.push_back(pass);
    }
    return passes;
  }

  double Seconds(const std::vector<Call>& calls) const {
    double sum = 0;
    for (const Call& call : calls) sum += SecondsOf(call, plan_.run, cluster_);
    return sum;
  }
  bool overlaps() const { return cluster_.messages_overlap; }

 private:
  double Products(double flops) const {
    const double of_rank = flops * static_cast<double>(plan_.run.micro_batch) / (mesh_.cp * mesh_.tp);
    return of_rank / cluster_.flops.at(TypeName(plan_.run.compute_type));
  }
  double ActivationBandwidth() const {
    const auto own = cluster_.activation_bandwidths.find(TypeName(plan_.run.compute_type));
    return own == cluster_.activation_bandwidths.end() ? cluster_.activation_bandwidth : own->second;
  }
  Pass OfPart(double flops, const PartBytes& bytes, const PassCalls& calls) const {
    Pass pass = {.products = Products(flops),
                 .activations = static_cast<double>(bytes.kept) / ActivationBandwidth()};
    AddMessages(calls, pass);
    return pass;
  }

  void AddMessages(const PassCalls& calls, Pass& pass) const {
    const double weights = kForwardShare * kColumnShare * pass.products;
    const double inner = static_cast<double>(plan_.model.heads * plan_.model.head_width);
    const double length = static_cast<double>(plan_.model.sequence);
    // Products of attention: 12 inner x length^2 FLOPs in all, a third of them forward.
    const double attention = kForwardShare * Products(12 * inner * length * length);
    double hidden_keys = 0, hidden_sums = 0;
    for (const Call& call : calls.forward) Add(call, attention, hidden_keys, pass);
    double keys = 0, sums = 0;
    // The keys' first shift of the ring is hidden, wherever tp's calls stand; what comes back is not.
    const auto is_send = [](const Call& call) { return call.operation == Operation::kSend; };
    const auto first_send = std::find_if(calls.backward.begin(), calls.backward.end(), is_send);
    for (const Call& call : calls.backward) {
      const double seconds = SecondsOf(call, plan_.run, cluster_);
      const bool is_sum = call.axis == Axis::kTp && call.operation != Operation::kAllGather;
      (call.axis == Axis::kCp ? pass.cp : pass.tp) += seconds;
      if (is_sum) sums += seconds;
      if (first_send != calls.backward.end() && &call == &*first_send) keys += seconds;
    }
    if (!overlaps()) return;
    hidden_sums = std::min(sums, weights);
    pass.tp -= hidden_sums;
    pass.cp -= std::min(keys, 2 * attention) + hidden_keys;
  }
  void Add(const Call& call, double attention, double& hidden_keys, Pass& pass) const {
    const double seconds = SecondsOf(call, plan_.run, cluster_);
    (call.axis == Axis::kCp ? pass.cp : pass.tp) += seconds;
    if (call.operation == Operation::kSend) hidden_keys += std::min(seconds, attention);
  }

  const StepPlan& plan_;
  const PassBytes& bytes_;
  const Cluster& cluster_;
  const MeshSizes mesh_;
};

double Optimizer(const StepPlan& plan, double parameters, const Cluster& cluster) {
  const PlannedRun& run = plan.run;
  const double e = BytesOf(run.master_type), c = BytesOf(run.compute_type);
  const double transfers = run.optimizer == OptimizerKind::kSgd ? 4 : 8;
  const double bytes = transfers * e + (run.compute_type == run.master_type ? 0 : 2 * c);
  return bytes * parameters / run.shard_ranks() / cluster.memory_bandwidth;
}

// At least one.
double CallsOf(const std::vector<Call>& calls) {
  double count = 0;
  for (const Call& call : calls) count += static_cast<double>(call.count);
  return std::max(count, 1.0);
}

// Terms of one rank of pp.
StepTime OfRank(const StepPlan& plan, const Times& times, const std::vector<Pass>& stages, int pp_rank,
                const StateCalls& state, const Cluster& cluster) {
  const double passes = plan.run.micro_batches;
  Pass pass;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    if (plan.schedule.rank_of_stage[stage] == pp_rank) pass += stages[stage];
  }
  StepTime time = {.products = passes * pass.products,
                   .activations = passes * pass.activations,
                   .calls = passes * pass.calls,
                   .gradients = passes * pass.gradients,
                   .tp = passes * pass.tp,
                   .cp = passes * pass.cp};
  const double parameters = static_cast<double>(state.parameters);
  time.gradients += passes * 2 * BytesOf(plan.run.master_type) * parameters / cluster.memory_bandwidth;
  const double roots = times.Seconds(state.root_gathers), blocks = times.Seconds(state.block_gathers);
  const double sums = times.Seconds(state.reductions);
  time.partial_sums = times.Seconds(state.partial_sums);
  time.optimizer = Optimizer(plan, parameters, cluster);
  if (!times.overlaps()) {
    time.gathers = roots + blocks;
    time.reductions = sums;
    return time;
  }
  // The first block's gather has nothing in front of it; the last reductions, of roots, nothing behind them.
  const double per_block = blocks / CallsOf(state.block_gathers);
  const bool per_pass = ShardsParameters(plan.run.strategy);
  const double forward = kForwardShare * pass.total(), backward = pass.total() - forward;
  time.gathers = roots + std::max(per_block, blocks - (per_pass ? passes * pass.total() : forward));
  // Shards of the last micro-batch, or of each; replicas of the last one.
  const bool each = plan.run.reduce_each_micro_batch && ShardsGradients(plan.run.strategy);
  double shards = 0;
  for (const Call& call : state.reductions) {
    if (call.axis == Axis::kShard) shards += times.Seconds({call});
  }
  const double replicas = sums - shards, one = each ? shards / passes : shards;
  time.reductions = std::max(one + replicas - backward, sums / CallsOf(state.reductions)) +
                    (each ? (passes - 1) * std::max(0.0, one - backward) : 0);
  return time;
}

double Makespan(const StepPlan& plan, const std::vector<Pass>& stages, const Times& times) {
  std::vector<double> seconds;
  for (const Pass& pass : stages) seconds.push_back(pass.total());
  const ActionCosts costs = {.forward = kForwardShare,
                             .input_gradient = kForwardShare,
                             .weight_gradient = kForwardShare,
                             .send = times.Seconds({MessageBetweenStages(plan)}),
                             .of_stage = seconds};
  const auto simulation = Simulate(plan.schedule, costs);
  PLAIT_CHECK_OK(simulation.status());
  return simulation->makespan;
}

}  // namespace

double SecondsOf(const Call& call, const PlannedRun& run, const Cluster& cluster) {
  const int size = SizeOf(run, call.axis);
  if (size == 1 || call.count == 0) return 0;
  const Link link = LinkOf(run, call.axis, cluster);
  return static_cast<double>(call.count) * StepsOf(call.operation, size) * link.latency_seconds +
         static_cast<double>(WireBytes(call, run)) / link.bytes_per_second;
}

std::string TypeName(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return "float64";
    case at::kBFloat16:
      return "bfloat16";
    case at::kHalf:
      return "float16";
    default:
      return "float32";
  }
}

std::vector<int> RanksThatDiffer(const StepPlan& plan) {
  const int ranks = plan.run.mesh.pp;
  if (ranks == 1) return {0};
  std::vector<int> blocks(ranks, 0);
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    blocks[plan.schedule.rank_of_stage[stage]] += plan.stages[stage].count;
  }
  std::vector<int> differ = {0, ranks - 1};
  if (ranks > 2) {
    differ.push_back(
        static_cast<int>(std::max_element(blocks.begin() + 1, blocks.end() - 1) - blocks.begin()));
  }
  return differ;
}

double PipelineSeconds(const StepPlan& plan, const PassBytes& bytes, const Cluster& cluster) {
  if (plan.run.mesh.pp == 1) return 0;
  const Times times(plan, bytes, cluster);
  const std::vector<Pass> stages = times.OfStages();
  std::vector<double> own(plan.run.mesh.pp, 0);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    own[plan.schedule.rank_of_stage[s]] += plan.run.micro_batches * stages[s].total();
  }
  return std::max(0.0, Makespan(plan, stages, times) - *std::max_element(own.begin(), own.end()));
}

StepTime TimeOf(const StepPlan& plan, const PassBytes& bytes, const std::vector<StateCalls>& states,
                double pipeline_seconds, const Cluster& cluster) {
  const Times times(plan, bytes, cluster);
  const std::vector<Pass> stages = times.OfStages();
  const std::vector<int> ranks = RanksThatDiffer(plan);
  StepTime longest, after;
  double busy = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const StepTime time = OfRank(plan, times, stages, ranks[i], states[i], cluster);
    if (time.work() > longest.work()) longest = time;
    if (time.after() > after.after()) after = time;
    // All ranks between the ends count like the one with the most blocks.
    const double alike = i < 2 ? 1 : static_cast<double>(plan.run.mesh.pp - 2);
    busy += alike * (time.work() + time.after()) / plan.run.mesh.pp;
  }
  longest.reductions = after.reductions;
  longest.partial_sums = after.partial_sums;
  longest.optimizer = after.optimizer;
  longest.pipeline = pipeline_seconds;
  const int on_node = std::min(cluster.ranks_per_node, plan.run.mesh.ranks());
  const double sharing = static_cast<double>(on_node) / std::min(on_node, cluster.processors_per_node);
  longest.shared = std::max(0.0, sharing > 1 ? busy * sharing - longest.total() : 0);
  return longest;
}

std::string StepTimeText(const StepTime& time) {
  const std::pair<const char*, double> terms[] = {{"products", time.products},
                                                  {"activations", time.activations},
                                                  {"calls", time.calls},
                                                  {"gradients", time.gradients},
                                                  {"tp", time.tp},
                                                  {"cp", time.cp},
                                                  {"gathers", time.gathers},
                                                  {"pipeline", time.pipeline},
                                                  {"reductions", time.reductions},
                                                  {"partial sums", time.partial_sums},
                                                  {"optimizer", time.optimizer},
                                                  {"shared", time.shared},
                                                  {"a step", time.total()}};
  std::string text;
  for (const auto& [name, seconds] : terms) {
    if (seconds <= 0) continue;
    absl::StrAppendFormat(&text, "  %-14s %12.3f ms %6.1f %%\n", name, 1e3 * seconds,
                          100 * seconds / time.total());
  }
  return text;
}

}  // namespace plait::parallel
