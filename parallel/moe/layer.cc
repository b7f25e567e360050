#include "parallel/moe/layer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "parallel/moe/layer_chunk.h"
#include "parallel/moe/replicas.h"

namespace plait::moe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of home experts, and of replicas behind them.
struct Parts {
  Parts(const ExpertPlacement& placement, int rank, const std::vector<std::int64_t>& offsets)
      : home(offsets.begin(), offsets.begin() + placement.home_experts(rank) + 1),
        replicas(offsets.begin() + placement.home_experts(rank), offsets.end()) {
    for (std::int64_t& offset : replicas) offset -= home.back();
  }
  std::int64_t home_rows() const { return home.back(); }
  std::int64_t replica_rows() const { return replicas.back(); }
  std::vector<std::int64_t> home, replicas;
};

at::Tensor Joined(const at::Tensor& home, const at::Tensor& replicas) {
  return replicas.defined() && replicas.size(0) > 0 ? at::cat({home, replicas}) : home;
}

// What a chunk's backward needs.
struct ChunkState {
  at::Tensor scales, outputs;  // of sorted places
  SavedExperts home, replicas;
  at::Tensor gradient;  // of outputs: kept from the first part of a backward for the second
};

// A forward pass, until its backward has ended.
struct Pass {
  ExchangeRanks ranks;
  ExpertLayerOptions options;
  ExpertPlacement placement;
  std::vector<Chunk> chunks;
  std::vector<ChunkState> states;
  ExpertWeights replicas;
  std::vector<at::Tensor ExpertWeights::*> members;  // that the experts have
  std::int64_t width = 0, k = 0;
  bool records = false;

  int rank() const { return ranks.comm().rank(); }
  Parts PartsOf(const Chunk& chunk) const { return {placement, rank(), chunk.offsets}; }
};

struct PassHolder final : torch::CustomClassHolder {
  explicit PassHolder(std::shared_ptr<Pass> p) : pass(std::move(p)) {}
  std::shared_ptr<Pass> pass;
};

ExpertWeights WeightsOf(const Pass& pass, at::TensorList parameters) {
  ExpertWeights weights;
  for (std::size_t i = 0; i < pass.members.size(); ++i) weights.*pass.members[i] = parameters[i].detach();
  return weights;
}

at::Tensor Experts(const Pass& pass, const ExpertWeights& home, const Chunk& chunk, const at::Tensor& rows,
                   ChunkState& state) {
  const Parts parts = pass.PartsOf(chunk);
  const auto run = [&](const ExpertWeights& weights, const at::Tensor& x, const std::vector<std::int64_t>& offsets,
                       SavedExperts& saved) {
    return ForwardExperts(pass.options.mlp, weights, x, offsets, pass.records ? &saved : nullptr);
  };
  const at::Tensor of_home = run(home, rows.narrow(0, 0, parts.home_rows()), parts.home, state.home);
  if (parts.replica_rows() == 0) return of_home;
  return Joined(of_home, run(pass.replicas, rows.narrow(0, parts.home_rows(), parts.replica_rows()),
                             parts.replicas, state.replicas));
}

// Rows in, results out, by chunks: while one is computed, the messages of the next are under way.
at::Tensor RunForward(Pass& pass, const at::Tensor& x, const at::Tensor& weights, at::TensorList parameters) {
  const ExpertWeights home = WeightsOf(pass, parameters);
  ReplicaFetch fetch(pass.ranks.comm(), pass.placement, home);
  const auto start = [&](std::size_t c) {
    const Chunk& chunk = pass.chunks[c];
    return chunk.exchange.StartDispatch(x.narrow(0, chunk.first, chunk.tokens));
  };
  std::vector<RowExchange::Pending> combining;
  std::vector<at::Tensor> results;
  pass.states.resize(pass.chunks.size());
  RowExchange::Pending dispatching = start(0);
  pass.replicas = fetch.Wait();
  for (std::size_t c = 0; c < pass.chunks.size(); ++c) {
    const Chunk& chunk = pass.chunks[c];
    ChunkState& state = pass.states[c];
    const at::Tensor received = dispatching.Wait();
    const at::Tensor values =
        weights.narrow(0, chunk.first, chunk.tokens).reshape({-1, 1});  // of its choices
    const at::Tensor scales = chunk.exchange.DispatchPlaces(GatherRows(values, chunk.choices).squeeze(1));
    if (c + 1 < pass.chunks.size()) dispatching = start(c + 1);
    state.scales = GatherRows(scales.unsqueeze(1), chunk.sorted).squeeze(1);
    const at::Tensor outputs = Experts(pass, home, chunk, GatherRows(received, chunk.rows), state);
    combining.push_back(chunk.exchange.StartCombine(
        SumRows(outputs, chunk.rows, chunk.exchange.received_rows(), state.scales)));
    if (pass.records) state.outputs = outputs;
  }
  for (RowExchange::Pending& pending : combining) results.push_back(pending.Wait());
  return results.size() == 1 ? results[0] : at::cat(results);
}

void Accumulate(ExpertWeights& sum, const ExpertWeights& more) {
  ForEachTensor(more, sum, [](const at::Tensor& addend, at::Tensor& total) {
    if (total.defined()) {
      total.add_(addend);
    } else {
      total = addend;
    }
  });
}

ExpertWeights ZerosLike(const ExpertWeights& weights) {
  ExpertWeights zeros;
  ForEachTensor(weights, zeros,
                [](const at::Tensor& weight, at::Tensor& zero) { zero = at::zeros(weight.sizes(), weight.options()); });
  return zeros;
}

struct Wanted {
  bool x = false, weights = false, experts = false;
};

struct PassGradients {
  at::Tensor x, weights;
  ExpertWeights home;
};

// The gradient of the rows that a chunk received, in the order of slots; those of home experts and replicas are added to sums.
at::Tensor ExpertsBackward(Pass& pass, const ExpertWeights& home, std::size_t c, const Wanted& wanted,
                           ExpertWeights& of_home, ExpertWeights& of_replicas) {
  const Parts parts = pass.PartsOf(pass.chunks[c]);
  ChunkState& state = pass.states[c];
  const WantedGradients wants = {.rows = wanted.x, .weights = wanted.experts};
  const auto run = [&](const ExpertWeights& weights, const SavedExperts& saved,
                       const std::vector<std::int64_t>& offsets, std::int64_t first, ExpertWeights& sum) {
    const ExpertGradients gradients =
        BackwardExperts(pass.options.mlp, weights, saved, offsets,
                        state.gradient.narrow(0, first, offsets.back()), wants);
    if (wanted.experts) Accumulate(sum, gradients.weights);
    return gradients.rows;
  };
  const at::Tensor rows = run(home, state.home, parts.home, 0, of_home);
  if (parts.replica_rows() == 0) return rows;
  const at::Tensor more = run(pass.replicas, state.replicas, parts.replicas, parts.home_rows(), of_replicas);
  return wanted.x ? Joined(rows, more) : rows;
}

PassGradients RunBackward(Pass& pass, const at::Tensor& gradient, at::TensorList parameters,
                          const Wanted& wanted) {
  const ExpertWeights home = WeightsOf(pass, parameters);
  const auto dispatches = [&](std::size_t c) { return !pass.states[c].gradient.defined(); };
  const auto start = [&](std::size_t c) {
    const Chunk& chunk = pass.chunks[c];
    return chunk.exchange.StartDispatch(gradient.narrow(0, chunk.first, chunk.tokens));
  };
  PassGradients result;
  ExpertWeights of_replicas;
  std::vector<RowExchange::Pending> combining;
  std::vector<at::Tensor> of_x, of_weights;
  RowExchange::Pending dispatching;
  if (dispatches(0)) dispatching = start(0);
  for (std::size_t c = 0; c < pass.chunks.size(); ++c) {
    const Chunk& chunk = pass.chunks[c];
    ChunkState& state = pass.states[c];
    if (dispatches(c)) {
      const at::Tensor received = dispatching.Wait();
      if (c + 1 < pass.chunks.size()) dispatching = start(c + 1);
      const ScaledRowGradients rows = SumRowsBackward(received, chunk.rows, state.outputs, state.scales);
      state.gradient = rows.rows;
      state.outputs = rows.scale;  // the outputs have done their work
    }
    if (wanted.weights) {
      const at::Tensor by_place =
          SumRows(state.outputs.unsqueeze(1), chunk.sorted, static_cast<std::int64_t>(chunk.sorted.size()));
      const at::Tensor of_choices = chunk.exchange.CombinePlaces(by_place.squeeze(1));
      of_weights.push_back(SumRows(of_choices.unsqueeze(1), chunk.choices, chunk.tokens * pass.k)
                               .view({chunk.tokens, pass.k}));
    }
    const at::Tensor rows = ExpertsBackward(pass, home, c, wanted, result.home, of_replicas);
    if (!wanted.x) continue;
    combining.push_back(
        chunk.exchange.StartCombine(SumRows(rows, chunk.rows, chunk.exchange.received_rows())));
  }
  if (wanted.experts) {
    if (HasReplicas(pass.placement)) {
      if (!of_replicas.in.defined()) of_replicas = ZerosLike(pass.replicas);
      ReduceToHome(pass.ranks.comm(), pass.placement, of_replicas, result.home);
    }
  }
  for (RowExchange::Pending& pending : combining) of_x.push_back(pending.Wait());
  if (wanted.x) result.x = of_x.size() == 1 ? of_x[0] : at::cat(of_x);
  if (wanted.weights) result.weights = of_weights.size() == 1 ? of_weights[0] : at::cat(of_weights);
  return result;
}

// Inputs: x, the weights of choices, then the parameters that the experts have.
struct LayerFunction : torch::autograd::Function<LayerFunction> {
  static at::Tensor forward(AutogradContext* context, const std::shared_ptr<Pass>& pass, const at::Tensor& x,
                            const at::Tensor& weights, at::TensorList parameters) {
    const at::Tensor y = RunForward(*pass, x, weights, parameters);
    variable_list saved(parameters.begin(), parameters.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["pass"] = c10::IValue::make_capsule(c10::make_intrusive<PassHolder>(pass));
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    Pass& pass = *static_cast<PassHolder&>(*context->saved_data["pass"].toCapsule()).pass;
    const variable_list parameters = context->get_saved_variables();
    Wanted wanted = {.x = context->needs_input_grad(0), .weights = context->needs_input_grad(1)};
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      wanted.experts = wanted.experts || context->needs_input_grad(2 + i);
    }
    const PassGradients of = RunBackward(pass, gradients[0], parameters, wanted);
    variable_list of_inputs = {at::Tensor(), of.x, of.weights};
    for (const auto member : pass.members) of_inputs.push_back(of.home.*member);
    return of_inputs;
  }
};

// Experts taken in turn: what a plan of memory and traffic assumes.
at::Tensor InTurn(at::IntArrayRef shape, std::int64_t experts) {
  return at::arange(shape[0] * shape[1], at::TensorOptions(at::kLong)).remainder_(experts).view(shape);
}

}  // namespace

ExpertLayer::ExpertLayer(ExchangeRanks ranks, const ExpertLayerOptions& options)
    : ranks_(std::move(ranks)), options_(options) {
  PLAIT_CHECK(options.experts > 0 && options.chunks > 0)
      << options.experts << " experts, " << options.chunks << " chunks";
}

at::Tensor ExpertLayer::Forward(const at::Tensor& x, const at::Tensor& experts, const at::Tensor& weights,
                                const ExpertWeights& home, const ExpertPlacement& placement) const {
  PLAIT_CHECK(x.dim() == 2 && experts.dim() == 2 && weights.sizes() == experts.sizes() &&
              experts.size(0) == x.size(0) && experts.scalar_type() == at::kLong)
      << "x of shape " << x.sizes() << ", experts " << experts.sizes() << ", weights " << weights.sizes()
      << "; expected (tokens, width), (tokens, k) of int64, (tokens, k)";
  PLAIT_CHECK(placement.ranks() == ranks_.comm().size() && placement.experts() == options_.experts &&
              home.in.size(0) == placement.home_experts(ranks_.comm().rank()))
      << "a placement of " << placement.experts() << " experts on " << placement.ranks() << " ranks, weights of "
      << home.in.size(0) << "; the layer has " << options_.experts << " on " << ranks_.comm().size();
  const at::Tensor on_host = experts.is_meta() ? InTurn(experts.sizes(), options_.experts)
                                               : experts.to(at::kCPU).contiguous();
  auto pass = std::make_shared<Pass>(
      Pass{.ranks = ranks_,
           .options = options_,
           .placement = placement,
           .chunks = MakeChunks(ranks_, placement, on_host, options_.chunks),
           .states = {},
           .replicas = {},
           .members = {},
           .width = x.size(1),
           .k = experts.size(1),
           .records = c10::GradMode::is_enabled()});
  variable_list parameters;
  for (const auto member : {&ExpertWeights::in, &ExpertWeights::in_bias, &ExpertWeights::gate,
                            &ExpertWeights::gate_bias, &ExpertWeights::out, &ExpertWeights::out_bias}) {
    if (!(home.*member).defined()) continue;
    pass->members.push_back(member);
    parameters.push_back(home.*member);
  }
  return LayerFunction::apply(pass, x.contiguous(), weights, at::TensorList(parameters));
}

}  // namespace plait::moe
