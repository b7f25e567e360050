#include "parallel/moe/layer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "parallel/moe/layer_chunk.h"
#include "parallel/moe/replicas.h"
#include "parallel/tensor/recorded_value.h"

namespace plait::moe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Phases = PassTrace::Phases;

// Offsets of the rows of home experts, and of those of replicas, which follow them.
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

// What a chunk's backward needs of its forward.
struct ChunkState {
  at::Tensor scales, outputs;  // of sorted places
  SavedExperts home, replicas;
};

struct ChunkGradients {
  at::Tensor outputs;
  HiddenGradients home, replicas;
};

constexpr at::Tensor ExpertWeights::*kMembers[] = {&ExpertWeights::in,   &ExpertWeights::in_bias,
                                                   &ExpertWeights::gate, &ExpertWeights::gate_bias,
                                                   &ExpertWeights::out,  &ExpertWeights::out_bias};

// What autograd keeps of a forward pass, besides parameters.
struct PassTensors {
  ExpertWeights replicas;
  std::vector<ChunkState> chunks;

  // All tensors in a fixed order.
  std::vector<at::Tensor*> All() {
    std::vector<at::Tensor*> all;
    for (const auto member : kMembers) all.push_back(&(replicas.*member));
    for (ChunkState& chunk : chunks) {
      for (at::Tensor* tensor : {&chunk.scales, &chunk.outputs}) all.push_back(tensor);
      for (SavedExperts* saved : {&chunk.home, &chunk.replicas}) {
        for (at::Tensor* tensor : {&saved->rows, &saved->in, &saved->gate}) all.push_back(tensor);
      }
    }
    return all;
  }
};

// A forward pass, until its graph is freed.
struct Pass {
  ExchangeRanks ranks;
  ExpertLayerOptions options;
  ExpertPlacement placement;
  std::shared_ptr<ReplicaCache> replicas;
  std::int64_t version = 0;  // of the replicas' weights
  std::vector<Chunk> chunks;
  std::vector<at::Tensor ExpertWeights::*> members;  // the defined ones
  std::int64_t k = 0;
  bool records = false;
  // Of each chunk, kept from a backward for inputs until that for parameters, and the gradient that it was given.
  std::vector<ChunkGradients> gradients;
  at::Tensor given;

  int rank() const { return ranks.comm().rank(); }
  Phases* forward() const { return ForwardOf(options.trace); }
  Phases* backward() const { return BackwardOf(options.trace); }
  Parts PartsOf(const Chunk& chunk) const { return {placement, rank(), chunk.offsets}; }
  void BeforeExperts(bool backward, std::size_t chunk) const {
    if (options.trace != nullptr && options.trace->before_experts)
      options.trace->before_experts(backward, chunk);
  }
};

ExpertWeights WeightsOf(const Pass& pass, at::TensorList parameters) {
  ExpertWeights weights;
  for (std::size_t i = 0; i < pass.members.size(); ++i) weights.*pass.members[i] = parameters[i].detach();
  return weights;
}

at::Tensor Joined(const std::vector<at::Tensor>& parts) {
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

at::Tensor Select(const at::Tensor& values, const RowNumbers& index) {
  return GatherRows(values.reshape({-1, 1}), index).squeeze(1);
}

at::Tensor RunExperts(const Pass& pass, const ExpertWeights& home, const ExpertWeights& replicas,
                      const Chunk& chunk, const at::Tensor& rows, ChunkState& state) {
  const ExpertClock clock(pass.forward());
  const Parts parts = pass.PartsOf(chunk);
  if (pass.options.trace != nullptr)
    pass.options.trace->computed_rows += parts.home_rows() + parts.replica_rows();
  const auto run = [&](const ExpertWeights& weights, const at::Tensor& x,
                       const std::vector<std::int64_t>& offsets, SavedExperts& saved) {
    return ForwardExperts(pass.options.mlp, weights, x, offsets, pass.records ? &saved : nullptr);
  };
  std::vector<at::Tensor> outputs = {run(home, rows.narrow(0, 0, parts.home_rows()), parts.home, state.home)};
  if (parts.replica_rows() > 0) {
    outputs.push_back(run(replicas, rows.narrow(0, parts.home_rows(), parts.replica_rows()), parts.replicas,
                          state.replicas));
  }
  return Joined(outputs);
}

// The communication of a chunk overlaps with the computation of another one.
class Dispatches {
 public:
  Dispatches(const Pass& pass, const at::Tensor& rows, Phases* phases)
      : pass_(pass), rows_(rows), phases_(phases), next_(Start(0)) {}
  // Of chunk `c`, in order.
  at::Tensor Wait(std::size_t c) {
    const at::Tensor received = Timed(phases_, &Phases::dispatch, [&] { return next_.Wait(); });
    if (c + 1 < pass_.chunks.size()) next_ = Start(c + 1);
    return received;
  }

 private:
  RowExchange::Pending Start(std::size_t c) const {
    const PhaseClock clock(phases_, &Phases::dispatch);
    const Chunk& chunk = pass_.chunks[c];
    return chunk.exchange.StartDispatch(rows_.narrow(0, chunk.first, chunk.tokens));
  }
  const Pass& pass_;
  const at::Tensor rows_;
  Phases* phases_;
  RowExchange::Pending next_;
};

at::Tensor WaitForAll(std::vector<RowExchange::Pending>& pending, Phases* phases) {
  const PhaseClock clock(phases, &Phases::combine);
  std::vector<at::Tensor> results;
  for (RowExchange::Pending& one : pending) results.push_back(one.Wait());
  return Joined(results);
}

at::Tensor RunForward(const Pass& pass, const at::Tensor& x, const at::Tensor& weights,
                      at::TensorList parameters, PassTensors& tensors) {
  const ExpertWeights home = WeightsOf(pass, parameters);
  Phases* const phases = pass.forward();
  Timed(phases, &Phases::replicas,
        [&] { return pass.replicas->StartFetch(pass.ranks.comm(), pass.placement, home); });
  Dispatches dispatches(pass, x, phases);
  tensors.replicas = Timed(phases, &Phases::replicas, [&] { return pass.replicas->WaitForFetch(); });
  tensors.chunks.resize(pass.chunks.size());
  std::vector<RowExchange::Pending> combining;
  for (std::size_t c = 0; c < pass.chunks.size(); ++c) {
    const Chunk& chunk = pass.chunks[c];
    ChunkState& state = tensors.chunks[c];
    const at::Tensor of_choices = Select(weights.narrow(0, chunk.first, chunk.tokens), chunk.choices);
    const at::Tensor scales =
        Timed(phases, &Phases::dispatch, [&] { return chunk.exchange.DispatchPlaces(of_choices); });
    const at::Tensor received = dispatches.Wait(c);
    const at::Tensor rows = Timed(phases, &Phases::permutation, [&] {
      state.scales = Select(scales, chunk.sorted);
      return GatherRows(received, chunk.rows);
    });
    pass.BeforeExperts(/*backward=*/false, c);
    state.outputs = RunExperts(pass, home, tensors.replicas, chunk, rows, state);
    const at::Tensor sums = Timed(phases, &Phases::permutation, [&] {
      return SumRows(state.outputs, chunk.rows, chunk.exchange.received_rows(), state.scales);
    });
    combining.push_back(Timed(phases, &Phases::combine, [&] { return chunk.exchange.StartCombine(sums); }));
    if (!pass.records) state = {};
  }
  return WaitForAll(combining, phases);
}

void AddTo(ExpertWeights& sum, const ExpertWeights& more) {
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
  ForEachTensor(weights, zeros, [](const at::Tensor& weight, at::Tensor& zero) {
    zero = at::zeros(weight.sizes(), weight.options());
  });
  return zeros;
}

struct Wanted {
  bool x = false, weights = false, experts = false;
  // A backward in two parts needs the gradients of inputs first.
  bool is_first_part() const { return x && !experts; }
  bool is_second_part() const { return experts && !x && !weights; }
};

// A backward pass over the chunks.
class PassBackward {
 public:
  PassBackward(Pass& pass, at::TensorList parameters, const PassTensors& tensors, const Wanted& wanted)
      : pass_(pass), home_(WeightsOf(pass, parameters)), tensors_(tensors), wanted_(wanted) {}

  void Run(const at::Tensor& gradient) {
    std::optional<Dispatches> dispatches;
    std::vector<ChunkGradients> kept = std::exchange(pass_.gradients, {});
    const bool has_kept = wanted_.is_second_part() && !kept.empty() && pass_.given.is_same(gradient);
    pass_.given = wanted_.is_first_part() ? gradient : at::Tensor();
    if (!has_kept) dispatches.emplace(pass_, gradient, pass_.backward());
    std::vector<RowExchange::Pending> combining;
    for (std::size_t c = 0; c < pass_.chunks.size(); ++c) {
      const Chunk& chunk = pass_.chunks[c];
      ChunkGradients of_chunk =
          has_kept ? std::move(kept[c])
                   : ChunkGradients{.outputs = OfOutputs(c, dispatches->Wait(c)), .home = {}, .replicas = {}};
      pass_.BeforeExperts(/*backward=*/true, c);
      const at::Tensor of_rows = ThroughExperts(c, of_chunk, has_kept || wanted_.is_first_part());
      if (wanted_.is_first_part()) pass_.gradients.push_back(std::move(of_chunk));
      if (!wanted_.x) continue;
      const at::Tensor sums = Timed(pass_.backward(), &Phases::permutation, [&] {
        return SumRows(of_rows, chunk.rows, chunk.exchange.received_rows());
      });
      combining.push_back(
          Timed(pass_.backward(), &Phases::combine, [&] { return chunk.exchange.StartCombine(sums); }));
    }
    if (wanted_.experts && HasReplicas(pass_.placement)) {
      const PhaseClock clock(pass_.backward(), &Phases::replicas);
      if (!of_replicas_.in.defined()) of_replicas_ = ZerosLike(tensors_.replicas);
      ReduceToHome(pass_.ranks.comm(), pass_.placement, of_replicas_, of_home);
    }
    if (wanted_.x) of_x = WaitForAll(combining, pass_.backward());
    if (wanted_.weights) of_weights = Joined(of_weights_);
  }

  at::Tensor of_x, of_weights;
  ExpertWeights of_home;

 private:
  // The gradient of a chunk's outputs; that of its weights is sent back to the tokens' ranks.
  at::Tensor OfOutputs(std::size_t c, const at::Tensor& received) {
    const Chunk& chunk = pass_.chunks[c];
    const ChunkState& state = tensors_.chunks[c];
    const ScaledRowGradients of = Timed(pass_.backward(), &Phases::permutation, [&] {
      return SumRowsBackward(received, chunk.rows, state.outputs, state.scales);
    });
    if (!wanted_.weights) return of.rows;
    const PhaseClock clock(pass_.backward(), &Phases::combine);
    const auto places = static_cast<std::int64_t>(chunk.sorted.size());
    const at::Tensor by_place = SumRows(of.scale.unsqueeze(1), chunk.sorted, places).squeeze(1);
    const at::Tensor of_choices = chunk.exchange.CombinePlaces(by_place).unsqueeze(1);
    of_weights_.push_back(
        SumRows(of_choices, chunk.choices, chunk.tokens * pass_.k).view({chunk.tokens, pass_.k}));
    return of.rows;
  }

  // The gradient of the rows of the chunk's experts. `in_parts`: that of hidden rows is kept, or was kept before.
  at::Tensor ThroughExperts(std::size_t c, ChunkGradients& gradients, bool in_parts) {
    const ExpertClock clock(pass_.backward());
    const Parts parts = pass_.PartsOf(pass_.chunks[c]);
    const ChunkState& state = tensors_.chunks[c];
    const auto run = [&](const ExpertWeights& weights, const SavedExperts& saved,
                         const at::Tensor& of_outputs, const std::vector<std::int64_t>& offsets,
                         HiddenGradients& of_hidden, ExpertWeights& sum) {
      const ExpertGradients of =
          BackwardExperts(pass_.options.mlp, weights, saved, offsets, of_outputs,
                          {.rows = wanted_.x, .weights = wanted_.experts}, in_parts ? &of_hidden : nullptr);
      if (wanted_.experts) AddTo(sum, of.weights);
      return of.rows;
    };
    std::vector<at::Tensor> of_rows = {run(home_, state.home,
                                           gradients.outputs.narrow(0, 0, parts.home_rows()), parts.home,
                                           gradients.home, of_home)};
    if (parts.replica_rows() > 0) {
      of_rows.push_back(run(tensors_.replicas, state.replicas,
                            gradients.outputs.narrow(0, parts.home_rows(), parts.replica_rows()),
                            parts.replicas, gradients.replicas, of_replicas_));
    }
    return wanted_.x ? Joined(of_rows) : at::Tensor();
  }

  Pass& pass_;
  const ExpertWeights home_;
  const PassTensors& tensors_;
  const Wanted wanted_;
  std::vector<at::Tensor> of_weights_;
  ExpertWeights of_replicas_;
};

// Inputs: x, the weights of choices, then the parameters that the experts have.
struct LayerFunction : torch::autograd::Function<LayerFunction> {
  static at::Tensor forward(AutogradContext* context, const std::shared_ptr<Pass>& pass, const at::Tensor& x,
                            const at::Tensor& weights, at::TensorList parameters) {
    PassTensors tensors;
    const at::Tensor y = RunForward(*pass, x, weights, parameters, tensors);
    variable_list saved(parameters.begin(), parameters.end());
    for (at::Tensor* tensor : tensors.All()) saved.push_back(std::move(*tensor));
    context->save_for_backward(std::move(saved));
    tensor_parallel::Record(*context, pass);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "ExpertLayer: its gradient cannot be differentiated again");
    Pass& pass = *tensor_parallel::Recorded<std::shared_ptr<Pass>>(*context);
    pass.replicas->CheckVersion(pass.placement, pass.rank(), pass.version);
    const variable_list saved = context->get_saved_variables();
    const std::size_t count = pass.members.size();
    PassTensors tensors;
    tensors.chunks.resize(pass.chunks.size());
    auto next = saved.begin() + static_cast<std::ptrdiff_t>(count);
    for (at::Tensor* tensor : tensors.All()) *tensor = *next++;
    Wanted wanted = {.x = context->needs_input_grad(0), .weights = context->needs_input_grad(1)};
    for (std::size_t i = 0; i < count; ++i)
      wanted.experts = wanted.experts || context->needs_input_grad(2 + i);
    PassBackward backward(pass, at::TensorList(saved).slice(0, count), tensors, wanted);
    backward.Run(gradients[0]);
    variable_list of_inputs = {at::Tensor(), backward.of_x, backward.of_weights};
    for (const auto member : pass.members) of_inputs.push_back(backward.of_home.*member);
    return of_inputs;
  }
};

// Round-robin experts: the assumption of memory and traffic estimates.
at::Tensor InTurn(at::IntArrayRef shape, std::int64_t experts) {
  return at::arange(shape[0] * shape[1], at::TensorOptions(at::kLong)).remainder_(experts).view(shape);
}

}  // namespace

ExpertLayer::ExpertLayer(ExchangeRanks ranks, const ExpertLayerOptions& options)
    : ranks_(std::move(ranks)), options_(options), replicas_(std::make_shared<ReplicaCache>()) {
  PLAIT_CHECK(options.experts > 0 && options.chunks > 0)
      << options.experts << " experts, " << options.chunks << " chunks";
}

const ExpertPlacement* ExpertLayer::placement_of_step() const { return replicas_->placement(); }
void ExpertLayer::EndStep() { replicas_->EndStep(); }

at::Tensor ExpertLayer::Forward(const at::Tensor& x, const at::Tensor& experts, const at::Tensor& weights,
                                const ExpertWeights& home, const ExpertPlacement& placement) const {
  PLAIT_CHECK(x.dim() == 2 && experts.dim() == 2 && weights.sizes() == experts.sizes() &&
              experts.size(0) == x.size(0) && experts.scalar_type() == at::kLong)
      << "x of shape " << x.sizes() << ", experts " << experts.sizes() << ", weights " << weights.sizes()
      << "; expected (tokens, width), (tokens, k) of int64, (tokens, k)";
  PLAIT_CHECK(placement.ranks() == ranks_.comm().size() && placement.experts() == options_.experts &&
              home.in.size(0) == placement.home_experts(ranks_.comm().rank()))
      << "a placement of " << placement.experts() << " experts on " << placement.ranks()
      << " ranks, weights of " << home.in.size(0) << "; the layer has " << options_.experts << " on "
      << ranks_.comm().size();
  // Row indices in messages, and sizes of products, are 32-bit.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  PLAIT_CHECK(experts.numel() <= kMost && x.size(1) <= kMost)
      << x.size(0) << " tokens for " << experts.size(1) << " experts each, " << x.size(1)
      << " wide: expected at most " << kMost << " rows of a rank, and as many columns; split the batch";
  const at::Tensor on_host =
      experts.is_meta() ? InTurn(experts.sizes(), options_.experts) : experts.to(at::kCPU).contiguous();
  std::vector<Chunk> chunks = Timed(ForwardOf(options_.trace), &Phases::places,
                                    [&] { return MakeChunks(ranks_, placement, on_host, options_.chunks); });
  if (options_.trace != nullptr) {
    for (const Chunk& chunk : chunks) options_.trace->sent_rows += chunk.exchange.sent_rows();
  }
  auto pass = std::make_shared<Pass>(Pass{.ranks = ranks_,
                                          .options = options_,
                                          .placement = placement,
                                          .replicas = replicas_,
                                          .version = replicas_->version(),
                                          .chunks = std::move(chunks),
                                          .members = {},
                                          .k = experts.size(1),
                                          .records = at::GradMode::is_enabled(),
                                          .gradients = {},
                                          .given = {}});
  variable_list parameters;
  for (const auto member : kMembers) {
    if (!(home.*member).defined()) continue;
    pass->members.push_back(member);
    parameters.push_back(home.*member);
  }
  return LayerFunction::apply(pass, x.contiguous(), weights, at::TensorList(parameters));
}

}  // namespace plait::moe
