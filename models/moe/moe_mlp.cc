#include "models/moe/moe_mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>

#include <limits>
#include <utility>

#include "absl/types/span.h"
#include "base/seed.h"
#include "comm/communicator.h"
#include "models/initial_values.h"
#include "models/rowwise/rowwise.h"
#include "parallel/context/context_axis.h"
#include "parallel/moe/load.h"
#include "parallel/tensor/collectives.h"
#include "parallel/tensor/linear.h"

namespace plait::moe {

using tensor_parallel::Partial, tensor_parallel::Residual, tensor_parallel::Shard;
using transformer::Container;

namespace {

// Draws one expert at a time, so that no rank needs memory for all of them.
void DrawExperts(const at::Tensor& parameter, const models::Placement& placement, double deviation) {
  if (!parameter.defined() || parameter.is_meta()) return;
  const bool split = !placement.boxes.empty();
  const std::vector<std::int64_t> whole = split ? placement.shape : parameter.sizes().vec();
  const models::Box box = split ? placement.boxes[0] : models::Box{{0, 0, 0}, whole};
  for (std::int64_t e = 0; e < whole[0]; ++e) {
    const at::Tensor numbers = at::empty({whole[1], whole[2]}, at::kFloat).normal_(0, deviation);
    if (e < box.begin[0] || e >= box.begin[0] + box.size[0]) continue;
    parameter.detach()
        .select(0, e - box.begin[0])
        .copy_(numbers.narrow(0, box.begin[1], box.size[1]).narrow(1, box.begin[2], box.size[2]));
  }
}

at::Tensor Activated(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::kGelu:
      return rowwise::Gelu(x, rowwise::GeluKind::kExact);
    case Activation::kGeluTanh:
      return rowwise::Gelu(x, rowwise::GeluKind::kTanh);
    case Activation::kRelu:
      return x.relu();
    case Activation::kSilu:
      return x * x.sigmoid();
  }
  return x;
}

// Mask of the local positions that are tokens, not padding; undefined if there is no padding.
at::Tensor RealTokens(const models::SequencePart& sequence) {
  if (sequence.axis == nullptr) return {};
  const std::int64_t padded = sequence.axis->PaddedLength(sequence.length);
  if (padded == sequence.length) return {};
  return sequence.axis->Positions(padded).lt(sequence.length);
}

void Add(std::vector<std::int64_t>& sums, const std::vector<std::int64_t>& more) {
  sums.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
}

}  // namespace

std::int64_t CountTokens(const models::Batch& batch) {
  const at::Tensor real = RealTokens(batch.sequence);
  if (!real.defined()) return batch.targets.numel();
  return batch.targets.size(0) * real.sum().item<std::int64_t>();
}

MoeMlp::MoeMlp(torch::nn::Module& parent, const std::string& name, std::int64_t layer, std::int64_t width,
               const MoeOptions& options, const at::TensorOptions& tensor_options)
    : layer_(layer), options_(options), module_(Container(parent, name)) {
  const std::int64_t experts = options.gate.experts, hidden = options.hidden;
  const auto router = Container(*module_, "router"), of_experts = Container(*module_, "experts");
  const auto add = [&](const char* parameter, at::IntArrayRef shape) {
    return of_experts->register_parameter(parameter, at::empty(shape, tensor_options));
  };
  router_ = router->register_parameter("weight", at::empty({experts, width}, tensor_options));
  if (options.gate.kind == GateKind::kNoisyTopK) {
    noise_ = router->register_parameter("noise_weight", at::empty({experts, width}, tensor_options));
  }
  if (options.gate.kind == GateKind::kBias) {
    bias_ = router->register_buffer("bias", at::zeros({experts}, tensor_options));
  }
  experts_.in = add("in_weight", {experts, hidden, width});
  if (options.bias) experts_.in_bias = add("in_bias", {experts, hidden});
  if (options.gated) experts_.gate = add("gate_weight", {experts, hidden, width});
  if (options.gated && options.bias) experts_.gate_bias = add("gate_bias", {experts, hidden});
  experts_.out = add("out_weight", {experts, width, hidden});
  if (options.bias) experts_.out_bias = add("out_bias", {experts, width});
  if (options.shared_hidden > 0) {
    const auto shared = Container(*module_, "shared");
    shared_in_.emplace(*shared, "in", width, options.shared_hidden, options.bias, tensor_options);
    shared_out_.emplace(*shared, "out", options.shared_hidden, width, options.bias, tensor_options);
  }
  const MoeRanks alone;
  UseRanks(alone);
}

bool MoeMlp::training() const { return module_->is_training(); }

void MoeMlp::UseRanks(const MoeRanks& ranks) {
  ranks_ = ranks;
  // A rank fetches and computes its part of an expert along tp, the same on all ranks that share experts.
  options_.planner.cost.hidden = experts_.in.size(1);
  layer_of_ranks_.emplace(ranks.experts, ExpertLayerOptions{.experts = options_.gate.experts,
                                                            .mlp = {.activation = options_.activation},
                                                            .chunks = options_.chunks});
}

MoeMlp::Output MoeMlp::Forward(const Residual& rows, const Call& call) {
  Output out = {.added = rows, .loss = {}};
  // Every rank along tp has all rows, and a part of each expert.
  const at::Tensor all = FromResidual(ranks_.tensor, rows).local();
  at::Tensor indices = transformer::TokenIndices(tensor_parallel::TensorAxis(), all.size(0), call.batch,
                                                 call.context.random, call.context.sequence, all.device());
  at::Tensor y;
  const at::Tensor real = RealTokens(call.context.sequence);
  if (real.defined() && !all.is_meta()) {
    // Padding is not routed.
    const at::Tensor kept = real.repeat({call.batch}).nonzero().squeeze(1).to(all.device());
    const at::Tensor some =
        ThroughExperts(all.index_select(0, kept), call, indices.index_select(0, kept), out.loss);
    y = at::zeros(all.sizes(), some.options()).index_add(0, kept, some);
  } else {
    y = ThroughExperts(all, call, indices, out.loss);
  }
  out.added = ToResidual(ranks_.tensor, Partial(y));
  if (!shared_in_.has_value()) return out;
  const Shard<1> wide = Map(ColumnLinear(shared_axis_, rows, {shared_in_->parameters()})[0],
                            [this](const at::Tensor& x) { return Activated(options_.activation, x); });
  out.added = AddRowLinear(shared_axis_, out.added, wide, shared_out_->parameters());
  return out;
}

// x (tokens, width) -> this rank's part of the sum over its experts.
at::Tensor MoeMlp::ThroughExperts(const at::Tensor& x, const Call& call, const at::Tensor& token_indices,
                                  at::Tensor& loss) {
  const at::ScalarType type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  GateContext gate = {
      .training = training(),
      .seed = base::DeriveSeed(call.context.random.seed, "router", static_cast<std::uint64_t>(layer_)),
      .token_indices = token_indices,
      .bias = bias_,
      .noise_logits = {}};
  at::Tensor seen = x.to(type);
  if (gate.training && options_.gate.jitter > 0)
    seen = Jitter(seen, options_.gate.jitter, gate.seed, token_indices);
  if (gate.training && noise_.defined()) gate.noise_logits = at::linear(seen, noise_.to(type));
  const at::Tensor logits = at::linear(seen, router_.to(type));
  const RoutedTokens routed = RouteTokens(options_.gate, ranks_.tokens, logits, gate);
  const ExpertPlacement placement = PlacementFor(routed.census, x.is_meta());
  if (gate.training && call.context.final) Count(routed, placement);
  const int parts = ranks_.tensor.size();
  // Each rank along tp contributes its share of the loss, as gradients are summed over tp. It is defined in evaluation
  // too: the tensors sent between pipeline stages must follow from the inputs' shapes.
  loss = routed.loss.defined() ? routed.loss / parts : at::zeros({}, logits.options());
  ExpertWeights weights = experts_;
  if (ranks_.tensor.rank() > 0 && weights.out_bias.defined()) weights.out_bias = weights.out_bias * 0;
  const at::Tensor y =
      layer_of_ranks_->Forward(x, routed.routing.experts, routed.routing.weights, weights, placement);
  if (routed.routing.not_finite == 0) return y;
  // A token with a non-finite router output has no expert; NaN makes the loss show it.
  const at::Tensor failed = routed.routing.weights.detach().isnan().any(1, true);
  return y.masked_fill(failed, std::numeric_limits<double>::quiet_NaN());
}

ExpertPlacement MoeMlp::PlacementFor(const Census& census, bool planning) {
  if (!training() || options_.planner.policy == PlacementPolicy::kHome) {
    return ExpertPlacement(census.ranks(), census.experts());
  }
  if (planning) return FullPlacement(options_.planner, census.ranks(), census.experts());
  return PlanPlacement(options_.planner, census, layer_of_ranks_->placement_of_step());
}

void MoeMlp::Count(const RoutedTokens& routed, const ExpertPlacement& placement) {
  Add(load_.rows_of_expert, routed.rows_of_expert);
  std::vector<std::int64_t> rows;
  for (const RankLoad& rank : LoadOfRanks(routed.census, placement)) {
    rows.push_back(rank.rows);
    load_.replicas += rank.replicas;
  }
  Add(load_.rows_of_rank, rows);
  load_.tokens += routed.tokens;
  load_.dropped += routed.dropped;
  load_.not_finite += routed.not_finite;
}

double MoeMlp::ValidPerToken(const models::Batch& batch, std::int64_t valid) const {
  std::int64_t counts[2] = {valid, CountTokens(batch)};
  if (ranks_.tokens.data.size() > 1) ranks_.tokens.data.AllReduce(comm::BufferOf(absl::MakeSpan(counts)));
  return counts[0] == 0 ? 0 : static_cast<double>(counts[0]) / static_cast<double>(counts[1]);
}

void MoeMlp::EndStep(bool updated) {
  layer_of_ranks_->EndStep();
  load_of_step_ = std::exchange(load_, {});
  if (!updated || !bias_.defined() || load_of_step_.rows_of_expert.empty()) return;
  const at::NoGradGuard not_recorded;
  const at::Tensor rows = at::empty({options_.gate.experts}, at::kLong);
  std::copy(load_of_step_.rows_of_expert.begin(), load_of_step_.rows_of_expert.end(),
            rows.mutable_data_ptr<std::int64_t>());
  MoveBias(options_.gate, rows.to(bias_.device()), bias_);
}

void MoeMlp::ResetBlock(const models::ModuleModel& model, double deviation, double out_deviation) const {
  models::DrawNormal(router_, model.PlacementOf(router_), deviation);
  // The noise begins with a deviation of softplus(0) = ln 2, the same for all tokens and experts.
  models::Fill(noise_, 0);
  models::Fill(bias_, 0);
  if (!shared_in_.has_value()) return;
  shared_in_->Reset(model, deviation);
  shared_out_->Reset(model, out_deviation);
}

void MoeMlp::ResetExperts(const models::ModuleModel& model, double deviation, double out_deviation) const {
  DrawExperts(experts_.in, model.PlacementOf(experts_.in), deviation);
  if (experts_.gate.defined()) DrawExperts(experts_.gate, model.PlacementOf(experts_.gate), deviation);
  DrawExperts(experts_.out, model.PlacementOf(experts_.out), out_deviation);
  for (const at::Tensor& bias : NeverDecay()) models::Fill(bias, 0);
}

std::vector<at::Tensor> MoeMlp::NeverDecay() const {
  std::vector<at::Tensor> biases;
  for (const at::Tensor& bias : {experts_.in_bias, experts_.gate_bias, experts_.out_bias}) {
    if (bias.defined()) biases.push_back(bias);
  }
  return biases;
}

std::vector<at::Tensor> MoeMlp::router_parameters() const {
  if (noise_.defined()) return {router_, noise_};
  return {router_};
}

std::vector<tensor_parallel::SplitGroup> MoeMlp::SplitGroups(const std::string& name) {
  if (!shared_in_.has_value()) return {};
  using tensor_parallel::Split;
  return {{.name = name + ".shared",
           .layers = {{.name = name + ".shared.in",
                       .split = Split::kColumns,
                       .weight = shared_in_->weight,
                       .bias = shared_in_->bias},
                      {.name = name + ".shared.out",
                       .split = Split::kRows,
                       .weight = shared_out_->weight,
                       .bias = shared_out_->bias}},
           .use = [this](const tensor_parallel::TensorAxis& axis) { shared_axis_ = axis; }}};
}

}  // namespace plait::moe
