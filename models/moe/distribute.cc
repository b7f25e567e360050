#include "models/moe/distribute.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "comm/gathered_text.h"
#include "models/moe/moe_mlp.h"

namespace plait::moe {
namespace {

using tensor_parallel::TensorAxis;

// All options that determine results, messages or placements.
std::string TextOf(const MoeOptions& o) {
  const GateOptions& g = o.gate;
  const PlannerOptions& p = o.planner;
  const MoeCostModel& c = p.cost;
  return absl::StrCat(
      g.experts, o.gated ? " gated" : "", " experts ", o.hidden, " wide", o.bias ? " with biases" : "",
      ", activation ", static_cast<int>(o.activation), ", k=", g.k, ", gate ", Name(g.kind),
      g.normalizes ? ", normalizes" : "", g.sigmoid ? ", sigmoid" : "", ", balance weight ", g.balance_weight,
      ", z weight ", g.z_weight, ", bias rate ", g.bias_rate, ", jitter ", g.jitter, ", capacity factor ",
      g.capacity_factor, ", shared expert ", o.shared_hidden, " wide, ", o.chunks, " chunks, replicas ",
      Name(p.policy), " in ", p.replica_slots, " slots, tolerance ", p.overload_tolerance, ", costs ",
      c.link_bytes_per_second, " ", c.latency_seconds, " ", c.rank_flops_per_second, " ", c.micro_batches);
}

absl::Status Check(const MoeOptions& options, int ep, int tp, bool splits_sequences) {
  PLAIT_RETURN_IF_ERROR(Validate(options));
  if (options.gate.experts < ep) {
    return absl::InvalidArgumentError(absl::StrCat(options.gate.experts, " experts for ", ep,
                                                   " ranks of ep; expected at least one for each"));
  }
  if (options.hidden < tp) {
    return absl::InvalidArgumentError(absl::StrCat("experts ", options.hidden, " wide for ", tp,
                                                   " ranks of tp; expected at least one column for each"));
  }
  if (splits_sequences && options.gate.capacity_factor > 0) {
    return absl::InvalidArgumentError(
        "a capacity factor where cp splits sequences: which rows are dropped would depend on the mesh; "
        "expected 0");
  }
  return absl::OkStatus();
}

absl::Status SameOnAll(const comm::Communicator& world, const std::string& mine) {
  const std::string first = comm::BroadcastText(world, mine);
  if (first == mine) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rank ", world.rank(), " has ", mine, ", rank 0 has ", first,
                                                 "; give all ranks the same options"));
}

// Keeps the home experts along dimension 0, and this rank's part along `dimension`, or all of it if negative.
models::Placement Keep(const at::Tensor& parameter, const ExpertPlacement& homes, int rank, int dimension,
                       const TensorAxis& axis) {
  models::Placement placement = {.shape = parameter.sizes().vec(), .boxes = {}};
  models::Box box = {std::vector<std::int64_t>(parameter.dim(), 0), parameter.sizes().vec()};
  box.begin[0] = homes.first_home_expert(rank);
  box.size[0] = homes.home_experts(rank);
  if (dimension >= 0) {
    const tensor_parallel::Range part = axis.PartOf(parameter.size(dimension));
    box.begin[dimension] = part.begin;
    box.size[dimension] = part.size();
  }
  placement.boxes = {box};
  models::KeepLocalPart(parameter, placement);
  return placement;
}

void Distribute(models::SplitModuleModel& model, MoeMlp& layer, const MoeRanks& ranks) {
  const int rank = ranks.experts.comm().rank();
  const ExpertPlacement homes(ranks.experts.comm().size(), layer.options().gate.experts);
  const TensorAxis& axis = ranks.tensor;
  const ExpertWeights& weights = layer.experts();
  const auto keep = [&](const at::Tensor& parameter, int dimension) {
    if (parameter.defined()) model.SetPlacement(parameter, Keep(parameter, homes, rank, dimension, axis));
  };
  for (const at::Tensor& of_hidden : {weights.in, weights.in_bias, weights.gate, weights.gate_bias})
    keep(of_hidden, 1);
  keep(weights.out, 2);
  if (weights.out_bias.defined()) {
    models::Placement placement = Keep(weights.out_bias, homes, rank, -1, axis);
    if (axis.split()) placement.partial = {"tp"};  // one rank adds it
    model.SetPlacement(weights.out_bias, std::move(placement));
  }
  for (const at::Tensor& parameter : layer.router_parameters()) {
    if (axis.split())
      model.SetPlacement(parameter, {.shape = {}, .boxes = {}, .replicated = {}, .partial = {"tp"}});
  }
  layer.UseRanks(ranks);
}

}  // namespace

absl::Status DistributeExperts(ExpertModel& model, const comm::DeviceMesh& mesh, bool splits_sequences) {
  const std::vector<MoeMlp*> layers = model.moe_layers();
  const std::string text = layers.empty() ? "no experts" : TextOf(layers[0]->options());
  PLAIT_RETURN_IF_ERROR(mesh.world().Agree(SameOnAll(mesh.world(), text)));
  if (layers.empty()) return absl::OkStatus();
  const comm::Communicator ep = mesh.axis("ep");
  const MoeOptions& options = layers[0]->options();
  const TensorAxis& axis = model.split_model().tensor_axis();
  PLAIT_RETURN_IF_ERROR(mesh.world().Agree(Check(options, ep.size(), axis.size(), splits_sequences)));
  const MoeRanks ranks = {.tokens = {.data = mesh.axis("tokens"), .group = ep.size()},
                          .experts = ExchangeRanks(ep),
                          .tensor = axis};
  for (MoeMlp* layer : layers) Distribute(model.split_model(), *layer, ranks);
  return absl::OkStatus();
}

}  // namespace plait::moe
