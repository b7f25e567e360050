#include "tools/moe_bench/bench_layer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/seed.h"
#include "models/attention/attention.h"
#include "models/block_model.h"
#include "models/linear/linear.h"
#include "parallel/moe/expert_mesh.h"
#include "parallel/moe/layer_chunk.h"
#include "parallel/moe/planner.h"
#include "parallel/moe/rows.h"
#include "tools/moe_bench/traffic.h"

namespace plait::moe_bench {
namespace {

using moe::PassTrace;
using moe::PhaseClock;

double Milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Uniform, as the initial values of torch.nn.Linear with `inputs` input features.
at::Tensor Draw(at::IntArrayRef shape, std::int64_t inputs, at::ScalarType type,
                const at::Generator& generator) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return at::empty(shape, at::kFloat).uniform_(-bound, bound, generator).to(type);
}

at::Generator GeneratorOf(std::uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

at::ScalarType GateType(const Config& config) {
  return config.type == at::kDouble ? at::kDouble : at::kFloat;
}

// Logit of experts that are not chosen; the chosen ones get 0, so that each has the weight 1 / k.
constexpr double kNotChosen = -1e4;

// Sent by this rank for routing and experts.
std::int64_t SentBytes(const comm::Communicator& comm) {
  std::int64_t bytes = 0;
  for (const char* name : {"tokens", "ep"}) {
    const auto axis = comm.stats().find(name);
    if (axis == comm.stats().end()) continue;
    for (const comm::OperationStats& operation : axis->second) bytes += operation.wire_bytes;
  }
  return bytes;
}

// A rank's tokens are whole sequences, and possibly a shorter one: calls `apply` with (sequences, tokens, width) for
// each length.
template <typename Function>
void ForEachLength(const at::Tensor& rows, std::int64_t tokens, const Function& apply) {
  const std::int64_t whole = rows.size(0) / tokens * tokens, rest = rows.size(0) - whole;
  if (whole > 0) apply(rows.narrow(0, 0, whole).view({-1, tokens, rows.size(1)}));
  if (rest > 0) apply(rows.narrow(0, whole, rest).unsqueeze(0));
}

}  // namespace

struct BenchLayer::Routed {
  moe::RoutedTokens tokens;
  moe::ExpertPlacement placement;
};

BenchRanks::BenchRanks(const comm::Communicator& all)
    : world(all),
      mesh(*moe::ExpertMesh(*comm::DeviceMesh::Create(all, {{"dp_replicate", all.size()}}), all.size())),
      tokens(mesh.axis("tokens")),
      experts(mesh.axis("ep")) {}

moe::ExpertsOptions MlpOf(const Config& config) {
  return {.activation = config.gated ? moe::Activation::kSilu : moe::Activation::kGelu};
}

moe::ExpertWeights DrawExperts(const Config& config, int local_experts, at::ScalarType type,
                               std::uint64_t seed) {
  const at::Generator generator = GeneratorOf(seed);
  const std::int64_t dim = config.model_dim, hidden = config.hidden_size;
  const auto draw = [&](at::IntArrayRef shape, std::int64_t inputs) {
    return Draw(shape, inputs, type, generator).requires_grad_(true);
  };
  moe::ExpertWeights weights;
  weights.in = draw({local_experts, hidden, dim}, dim);
  weights.in_bias = draw({local_experts, hidden}, dim);
  if (config.gated) weights.gate = draw({local_experts, hidden, dim}, dim);
  if (config.gated) weights.gate_bias = draw({local_experts, hidden}, dim);
  weights.out = draw({local_experts, dim, hidden}, hidden);
  weights.out_bias = draw({local_experts, dim}, hidden);
  return weights;
}

namespace {

std::vector<at::Tensor> TensorsOf(const moe::ExpertWeights& w) {
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& tensor : {w.in, w.in_bias, w.gate, w.gate_bias, w.out, w.out_bias}) {
    if (tensor.defined()) tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace

std::int64_t ExpertBytes(const moe::ExpertWeights& weights) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : TensorsOf(weights)) {
    bytes += tensor.numel() / tensor.size(0) * static_cast<std::int64_t>(tensor.element_size());
  }
  return bytes;
}

BenchLayer::BenchLayer(const Config& config, int local_experts, const BenchRanks& ranks,
                       const moe::MoeCostModel& cost)
    : config_(config), ranks_(ranks), cost_(cost), experts_(local_experts * ranks.world.size()) {
  const int rank = ranks.world.rank();
  const moe::WorkloadOptions workload = config.WorkloadOf(experts_, ranks.world.size());
  std::int64_t mine = 0;
  for (int r = 0; r < ranks.world.size(); ++r) {
    const std::int64_t tokens =
        moe::FirstToken(workload, config.samples, r + 1) - moe::FirstToken(workload, config.samples, r);
    sequences_ += (tokens + config.num_tokens - 1) / config.num_tokens;
    if (r == rank) mine = tokens;
  }
  const auto seed_of = [&](const char* name, int of) {
    return base::DeriveSeed(config.seed, name, static_cast<std::uint64_t>(of));
  };
  x_ = at::empty({mine, config.model_dim}, at::kFloat)
           .uniform_(0, 1, GeneratorOf(seed_of("tokens", rank)))
           .to(config.type);
  const at::Generator shared = GeneratorOf(seed_of("attention and gate", 0));
  for (int i = 0; i < 4; ++i) {
    attention_.push_back(Draw({config.model_dim, config.model_dim}, config.model_dim, config.type, shared));
  }
  gate_weight_ =
      Draw({experts_, config.model_dim}, config.model_dim, GateType(config), shared).requires_grad_(true);
  gate_bias_ = Draw({experts_}, config.model_dim, GateType(config), shared).requires_grad_(true);
  weights_ =
      DrawExperts(config, local_experts, trains() ? GateType(config) : config.type, seed_of("experts", rank));
  if (trains()) MakeOptimizer();
}

void BenchLayer::MakeOptimizer() {
  constexpr double kDecay = 0.01;  // of AdamW
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const at::Tensor& tensor : TensorsOf(weights_)) named.emplace_back(absl::StrCat(named.size()), tensor);
  std::vector<models::ParameterUnit> units = {models::MakeUnit("experts", named)};
  units[0].replicate_axis = "ep_replicate";
  units[0].shard_axis = "ep_shard";
  if (gate_learns())
    units.push_back(models::MakeUnit("gate", {{"weight", gate_weight_}, {"bias", gate_bias_}}));
  auto engine = parallel::DataParallel::Create(
      ranks_.mesh, std::move(units), {.strategy = parallel::Strategy::kDdp, .compute_type = config_.type});
  PLAIT_CHECK_OK(engine.status());
  engine_ = *std::move(engine);
  parallel::ShardedOptimizerOptions options = {.lr = config_.lr};
  if (config_.optimizer == "sgd") {
    options.kind = parallel::OptimizerKind::kSgd;
  } else {
    options.weight_decay = kDecay;
  }
  optimizer_ = std::make_unique<parallel::ShardedOptimizer>(*engine_, options);
}

bool BenchLayer::gate_learns() const { return !config_.workload.has_value(); }

at::Tensor BenchLayer::WithAttention() const {
  const at::NoGradGuard not_recorded;
  const std::int64_t dim = config_.model_dim;
  std::vector<at::Tensor> parts;
  ForEachLength(x_, config_.num_tokens, [&](const at::Tensor& x) {
    const auto heads = [&](const at::Tensor& weight) {
      return linear::Linear(x.reshape({-1, dim}), weight)
          .view({x.size(0), x.size(1), kHeads, dim / kHeads})
          .transpose(1, 2);
    };
    const at::Tensor mixed = attention::Attention(heads(attention_[0]), heads(attention_[1]),
                                                  heads(attention_[2]), {.causal = false});
    parts.push_back(
        linear::AddLinear(x.reshape({-1, dim}), mixed.transpose(1, 2).reshape({-1, dim}), attention_[3]));
  });
  return parts.empty() ? x_ : at::cat(parts);
}

at::Tensor BenchLayer::ForcedLogits(int step) const {
  const moe::WorkloadOptions options = config_.WorkloadOf(experts_, ranks_.world.size());
  const std::int64_t first = moe::FirstToken(options, config_.samples, ranks_.world.rank());
  std::vector<std::int64_t> ids = moe::ExpertIds(options, step, first, x_.size(0));
  const at::Tensor chosen = at::from_blob(ids.data(), {x_.size(0), config_.top}, at::kLong);
  return at::full({x_.size(0), experts_}, kNotChosen, at::TensorOptions(GateType(config_)))
      .scatter_(1, chosen, 0.0);
}

at::Tensor BenchLayer::Logits(const at::Tensor& h, const at::Tensor& forced, PassTrace& trace) const {
  if (forced.defined()) return forced;
  const PhaseClock clock(&trace.forward, &PassTrace::Phases::gate);
  const at::ScalarType type = GateType(config_);
  return at::linear(h.to(type), gate_weight_.to(type), gate_bias_.to(type));
}

at::Tensor BenchLayer::Loss(const at::Tensor& y) const {
  at::Tensor loss = y.sum() * 0;  // for a rank without tokens
  ForEachLength(y, config_.num_tokens, [&](const at::Tensor& sequences) {
    const at::Tensor sums = sequences.sum(at::IntArrayRef({2}), false, GateType(config_));
    loss = loss - at::log_softmax(sums, 1).select(1, 0).sum();
  });
  return loss / static_cast<double>(sequences_);
}

void BenchLayer::RunExperts(const at::Tensor& h, const Routed& routed, StepFacts& facts) {
  const double begin = Milliseconds() - facts.forward_ms;
  const moe::ExpertLayer layer(
      ranks_.experts,
      {.experts = experts_, .mlp = MlpOf(config_), .chunks = config_.chunks, .trace = &facts.lines.trace});
  const moe::Routing& routing = routed.tokens.routing;
  const auto forward = [&] {
    return Loss(layer.Forward(h, routing.experts, routing.weights, weights_, routed.placement));
  };
  const at::Tensor loss = trains() ? engine_->Forward(forward) : forward();
  facts.forward_ms = Milliseconds() - begin;
  trains() ? engine_->Backward(loss) : loss.backward();
  facts.backward_ms = Milliseconds() - begin - facts.forward_ms;
  if (trains()) {
    PLAIT_CHECK_OK(optimizer_->Step().status);
    engine_->WaitForParameters();
  }
  facts.step_ms = Milliseconds() - begin;
}

void BenchLayer::RunDispatch(const at::Tensor& h, const Routed& routed, StepFacts& facts) {
  const double begin = Milliseconds() - facts.forward_ms;
  PassTrace& trace = facts.lines.trace;
  const at::Tensor ids = routed.tokens.routing.experts.contiguous();
  const std::vector<moe::Chunk> chunks = moe::Timed(&trace.forward, &PassTrace::Phases::places, [&] {
    return moe::MakeChunks(ranks_.experts, routed.placement, ids, config_.chunks);
  });
  const auto there_and_back = [&](const at::Tensor& rows, PassTrace::Phases* phases) {
    std::vector<at::Tensor> results;
    for (const moe::Chunk& chunk : chunks) {
      const at::Tensor received = chunk.exchange.Dispatch(rows.narrow(0, chunk.first, chunk.tokens));
      const at::Tensor sums = moe::Timed(phases, &PassTrace::Phases::permutation, [&] {
        return moe::SumRows(moe::GatherRows(received, chunk.rows), chunk.rows,
                            chunk.exchange.received_rows());
      });
      results.push_back(chunk.exchange.Combine(sums));
    }
    return at::cat(results);
  };
  for (const moe::Chunk& chunk : chunks) {
    trace.computed_rows += chunk.offsets.back();
    trace.sent_rows += chunk.exchange.sent_rows();
  }
  const at::Tensor y = there_and_back(h.detach(), &trace.forward);
  facts.forward_ms = Milliseconds() - begin;
  there_and_back(y, &trace.backward);
  facts.step_ms = Milliseconds() - begin;
  facts.backward_ms = facts.step_ms - facts.forward_ms;
}

void BenchLayer::CountLoad(const Routed& routed, StepFacts& facts) {
  const moe::Census& census = routed.tokens.census;
  const int rank = ranks_.world.rank();
  const Blocks blocks = BlocksOf(routed.placement, census, rank);
  facts.lines.rank = rank;
  facts.lines.blocks = blocks.all;
  facts.lines.remote_blocks = blocks.remote;
  facts.load = moe::ReportLoad(census, routed.placement);
  facts.predicted = moe::PredictSeconds(cost_, moe::LoadOfRanks(census, routed.placement));
  moe::ExpertPlacement home(census.ranks(), census.experts());
  moe::ShareRows(census, moe::SharingOf(moe::PlacementPolicy::kHome), home);
  facts.home_load = moe::ReportLoad(census, home);
  facts.predicted_home = moe::PredictSeconds(cost_, moe::LoadOfRanks(census, home));
  const at::Tensor ids = routed.tokens.routing.experts.contiguous();
  facts.routed_rows = ids.ge(0).sum().item<std::int64_t>();
  facts.sent_rows =
      SentRows(routed.placement, rank,
               {ids.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(ids.numel())}, config_.top);
  if (previous_.has_value()) {
    moe::ShareRows(census, moe::SharingOf(config_.placement), *previous_);
    facts.stale_load = moe::ReportLoad(census, *previous_);
  }
  previous_ = routed.placement;
}

absl::StatusOr<StepFacts> BenchLayer::Step(int step) {
  StepFacts facts;
  const at::Tensor forced = config_.workload.has_value() ? ForcedLogits(step) : at::Tensor();
  for (at::Tensor parameter : TensorsOf(weights_)) parameter.mutable_grad() = at::Tensor();
  ranks_.world.Barrier();
  const double before = Milliseconds();
  const at::Tensor h = WithAttention().requires_grad_(true);
  facts.attention_ms = Milliseconds() - before;
  ranks_.world.Barrier();
  const std::int64_t bytes_before = SentBytes(ranks_.world);
  const double begin = Milliseconds();
  PassTrace& trace = facts.lines.trace;
  const moe::GateOptions gate = {
      .experts = experts_, .k = config_.top, .normalizes = config_.top > 1, .balance_weight = 0};
  moe::RoutedTokens tokens = moe::RouteTokens(gate, {.data = ranks_.tokens, .group = ranks_.world.size()},
                                              Logits(h, forced, trace), {.training = true}, &trace);
  if (tokens.not_finite > 0) {
    return absl::InternalError(absl::StrCat("step ", step, ": the gate's logits of ", tokens.not_finite,
                                            " of ", tokens.tokens, " tokens are not finite; lower --lr"));
  }
  const double planning = Milliseconds();
  moe::ExpertPlacement placement = moe::PlanPlacement(
      {.policy = config_.placement, .replica_slots = config_.slots(), .cost = cost_}, tokens.census);
  const Routed routed = {std::move(tokens), std::move(placement)};
  facts.forward_ms = Milliseconds() - begin;
  facts.lines.planner_ms = facts.forward_ms - (planning - begin);
  if (config_.mode == Mode::kDispatchOnly) {
    RunDispatch(h, routed, facts);
  } else {
    RunExperts(h, routed, facts);
  }
  facts.wire_bytes = SentBytes(ranks_.world) - bytes_before;
  CountLoad(routed, facts);
  return facts;
}

}  // namespace plait::moe_bench
