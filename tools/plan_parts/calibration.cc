#include "tools/plan_parts/calibration.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <vector>

#include "base/status_macros.h"
#include "comm/gathered_text.h"
#include "comm/host_processors.h"
#include "comm/launch/job.h"
#include "comm/tensor_collectives.h"
#include "models/linear/linear.h"
#include "parallel/plan/available_memory.h"
#include "parallel/plan/pass_memory.h"
#include "parallel/plan/step_time.h"

namespace plait::planning {
namespace {

using parallel::Cluster;
using parallel::Link;

constexpr int kRepetitions = 5;
constexpr std::int64_t kSmall = std::int64_t{4} << 10, kLarge = std::int64_t{16} << 20;  // bytes
constexpr std::int64_t kOptimizedParameters = std::int64_t{8} << 20;
constexpr double kBytesOfAdamW = 28;

double Seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Collective. Minimum over repetitions, maximum over ranks.
double LeastSeconds(const comm::Communicator& world, const std::function<void()>& work) {
  work();  // the first one allocates
  double least = 1e30;
  for (int i = 0; i < kRepetitions; ++i) {
    world.Barrier();
    least = std::min(least, Seconds(work));
  }
  world.AllReduce(comm::BufferOf(absl::MakeSpan(&least, 1)), comm::ReduceOp::kMax);
  return least;
}

// One linear layer with its operands.
struct Layer {
  at::Tensor x, weight, gradient;
  double flops() const { return 6.0 * static_cast<double>(x.size(0) * weight.numel()); }
};

std::vector<Layer> LayersOf(const CalibrationModel& model, at::ScalarType type) {
  std::vector<Layer> layers;
  const std::int64_t rows = model.samples * model.planned.sequence;
  for (const models::ParameterUnit& unit : model.planned.model->units()) {
    for (const models::ParameterSpec& p : unit.parameters) {
      if (unit.block == models::ParameterUnit::kRoot || p.tensor.dim() != 2) continue;
      layers.push_back({at::randn({rows, p.tensor.size(1)}, type), at::randn(p.tensor.sizes(), type),
                        at::randn({rows, p.tensor.size(0)}, type)});
    }
  }
  return layers;
}

double Flops(const comm::Communicator& world, const CalibrationModel& model, at::ScalarType type) {
  const at::NoGradGuard no_grad;
  const std::vector<Layer> layers = LayersOf(model, type);
  double flops = 0;
  for (const Layer& layer : layers) flops += layer.flops();
  const double seconds = LeastSeconds(world, [&] {
    for (const Layer& layer : layers) {
      linear::Product(layer.x, layer.weight.t());
      linear::Product(layer.gradient, layer.weight);
      linear::Product(layer.gradient.t(), layer.x);
    }
  });
  return flops / seconds;
}

// Forward and backward of a model with `blocks` blocks.
double PassSeconds(const comm::Communicator& world, const CalibrationModel& model, std::int64_t blocks,
                   std::int64_t samples, at::ScalarType type) {
  const std::unique_ptr<models::BlockModel> made = model.make(blocks, type);
  made->SetTraining(true);
  const models::Batch batch = model.batch(samples, type);
  return LeastSeconds(world, [&] {
    const at::AutoGradMode recorded(true);
    for (const models::ParameterUnit& unit : made->units()) {
      for (const models::ParameterSpec& p : unit.parameters) p.tensor.mutable_grad().reset();
    }
    models::RunModel(*made, batch).sum.backward();
  });
}

// Forward and backward of one block, from models with three blocks and one.
double BlockSeconds(const comm::Communicator& world, const CalibrationModel& model, std::int64_t samples,
                    at::ScalarType type) {
  return (PassSeconds(world, model, 3, samples, type) - PassSeconds(world, model, 1, samples, type)) / 2;
}

// Extrapolated linearly from one and all samples to zero.
double EmptyBlockSeconds(const comm::Communicator& world, const CalibrationModel& model) {
  if (model.samples == 1) return 0;
  const double one = BlockSeconds(world, model, 1, at::kFloat);
  const double all = BlockSeconds(world, model, model.samples, at::kFloat);
  return std::max(0.0, one - (all - one) / static_cast<double>(model.samples - 1));
}

absl::StatusOr<double> ActivationBandwidth(const comm::Communicator& world, const CalibrationModel& model,
                                           const Cluster& cluster, at::ScalarType type) {
  parallel::PassMemory passes(model.planned);
  PLAIT_ASSIGN_OR_RETURN(const parallel::PassBytes* const pass,
                         passes.Of({.micro_batch = model.samples, .compute_type = type}));
  const double block = BlockSeconds(world, model, model.samples, type);
  const double products = static_cast<double>(model.samples) * model.planned.block_flops /
                          cluster.flops.at(parallel::TypeName(type));
  // A difference of small numbers: the rest of a block of a small model may vanish in it, or be less than nothing.
  const double rest = std::max(block - cluster.block_seconds - products, 0.05 * std::max(block, products));
  return static_cast<double>(pass->block.kept) / rest;
}

double MemoryBandwidth(const comm::Communicator& world) {
  const auto tensor = [] { return std::vector<at::Tensor>{at::ones({kOptimizedParameters})}; };
  const auto values = tensor(), gradients = tensor(), first = tensor(), second = tensor();
  const std::vector<at::Tensor> steps = {at::full({}, 1.0)};
  const double seconds = LeastSeconds(world, [&] {
    const at::NoGradGuard no_grad;
    at::_fused_adamw_(values, gradients, first, second, {}, steps, /*lr=*/1e-3, 0.9, 0.99, 0.01, 1e-8, false,
                      false, {}, {});
  });
  return kBytesOfAdamW * static_cast<double>(kOptimizedParameters) / seconds;
}

// Seconds of one collective with `bytes` in its larger buffer.
double CollectiveSeconds(const comm::Communicator& world, const comm::Communicator& group,
                         comm::Operation operation, std::int64_t bytes) {
  const std::int64_t part = bytes / 4 / group.size(), count = part * group.size();
  at::Tensor whole = at::zeros({count}), mine = at::zeros({part});
  return LeastSeconds(world, [&] {
    if (operation == comm::Operation::kAllReduce) comm::AllReduce(group, whole);
    if (operation == comm::Operation::kAllGather) comm::AllGatherAsync(group, mine, whole).Wait();
    if (operation == comm::Operation::kReduceScatter) comm::ReduceScatter(group, whole, mine);
  });
}

// Latency and bandwidth from all three collectives together.
Link MeasuredLink(const comm::Communicator& world, const comm::Communicator& group) {
  const double ranks = group.size(), depth = std::ceil(std::log2(ranks));
  double small = 0, large = 0, steps = 0, bytes = 0;
  for (const comm::Operation operation :
       {comm::Operation::kAllReduce, comm::Operation::kAllGather, comm::Operation::kReduceScatter}) {
    const double times = operation == comm::Operation::kAllReduce ? 2 : 1;
    small += CollectiveSeconds(world, group, operation, kSmall);
    large += CollectiveSeconds(world, group, operation, kLarge);
    steps += times * depth;
    bytes += times * static_cast<double>(kLarge) * (ranks - 1) / ranks;
  }
  return {bytes / std::max(large - small, 1e-9), small / steps};
}

// Number of this rank's node, its local rank there, the number of nodes, and whether all have as many ranks.
struct Place {
  int node = 0, local = 0, nodes = 1;
  bool equal = true;
};
Place PlaceOf(const comm::Communicator& world) {
  const std::vector<std::string> hosts = comm::GatherText(world, comm::DetectJob().host);
  std::map<std::string, int> nodes, seen;
  Place place;
  for (int rank = 0; rank < world.size(); ++rank) {
    const int node = nodes.emplace(hosts[rank], static_cast<int>(nodes.size())).first->second;
    if (rank == world.rank()) place = {node, seen[hosts[rank]]};
    ++seen[hosts[rank]];
  }
  place.nodes = static_cast<int>(nodes.size());
  place.equal = std::all_of(seen.begin(), seen.end(),
                            [&](const auto& host) { return host.second * place.nodes == world.size(); });
  return place;
}

// Rates are those of a rank that has a processor to itself: plans share processors where a run's ranks do.
absl::Status CheckPlace(const Place& place, int ranks_per_node, std::int64_t processors) {
  if (!place.equal) {
    return absl::InvalidArgumentError(
        "--calibrate: nodes have unequal numbers of ranks; start as many on each");
  }
  if (ranks_per_node <= processors) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--calibrate: ", ranks_per_node, " ranks on a node of ",
                                                 processors, " processors; expected at most one on each"));
}

absl::Status MeasureLinks(const comm::Communicator& world, const comm::Communicator& node, const Place& place,
                          Cluster& cluster) {
  if (cluster.ranks_per_node > 1) cluster.within_node = MeasuredLink(world, node);
  if (cluster.nodes == 1) return absl::OkStatus();
  cluster.between_nodes = MeasuredLink(world, world.Split(place.local, place.node, "nodes"));
  cluster.between_nodes.bytes_per_second *= cluster.ranks_per_node;  // all of them at once
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Cluster> Calibrate(const comm::Communicator& world, const CalibrationModel& model) {
  const Place place = PlaceOf(world);
  const comm::Communicator node = world.Split(place.node, place.local, "node");
  std::int64_t processors = comm::ProcessorsOfHost(world);  // of the node that has fewest
  world.AllReduce(comm::BufferOf(absl::MakeSpan(&processors, 1)), comm::ReduceOp::kMin);
  PLAIT_RETURN_IF_ERROR(CheckPlace(place, world.size() / place.nodes, processors));
  Cluster cluster = {
      .name = comm::DetectJob().host, .nodes = place.nodes, .ranks_per_node = world.size() / place.nodes};
  cluster.processors_per_node = static_cast<int>(processors);
  cluster.memory_bytes = static_cast<double>(parallel::AvailableMemory().bytes) / cluster.ranks_per_node;
  cluster.messages_overlap = false;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    cluster.flops[parallel::TypeName(type)] = Flops(world, model, type);
  }
  cluster.block_seconds = EmptyBlockSeconds(world, model);
  PLAIT_ASSIGN_OR_RETURN(cluster.activation_bandwidth,
                         ActivationBandwidth(world, model, cluster, at::kFloat));
  PLAIT_ASSIGN_OR_RETURN(cluster.activation_bandwidths["bfloat16"],
                         ActivationBandwidth(world, model, cluster, at::kBFloat16));
  cluster.memory_bandwidth = MemoryBandwidth(world);
  PLAIT_RETURN_IF_ERROR(MeasureLinks(world, node, place, cluster));
  return cluster;
}

}  // namespace plait::planning
