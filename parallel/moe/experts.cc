#include "parallel/moe/experts.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "models/linear/grouped.h"
#include "parallel/moe/reference_experts.h"

namespace plait::moe {
namespace {

using Offsets = absl::Span<const std::int64_t>;
using linear::GroupKernels;

// Experts [first, first + count), whose rows are computed together.
struct Chunk {
  std::int64_t first = 0;
  std::int64_t count = 0;
  Offsets offsets;  // of these experts

  std::int64_t rows() const { return offsets.back() - offsets.front(); }
  at::Tensor ExpertsOf(const at::Tensor& weights) const {
    return weights.defined() ? weights.narrow(0, first, count) : weights;
  }
  at::Tensor RowsOf(const at::Tensor& rows) const {
    return rows.defined() ? rows.narrow(0, offsets.front(), this->rows()) : rows;
  }
};

// One expert at a time on one thread, so that its hidden rows stay in the cache; with several threads, enough experts
// together to give each thread some rows. All at once on other devices.
std::vector<Chunk> ChunksOf(Offsets offsets, const at::Tensor& rows) {
  constexpr std::int64_t kRowsOfThread = 256;
  const bool together = !rows.is_cpu() && !rows.is_meta();
  const std::int64_t enough = kRowsOfThread * (at::get_num_threads() - 1) + 1;
  const auto experts = static_cast<std::int64_t>(offsets.size()) - 1;
  std::vector<Chunk> chunks;
  for (std::int64_t first = 0, last = 0; first < experts; first = last) {
    do {
      ++last;
    } while (last < experts && (together || offsets[last] - offsets[first] < enough));
    chunks.push_back({first, last - first, offsets.subspan(first, last - first + 1)});
  }
  return chunks;
}

// A buffer for the hidden rows of the largest chunk, or for all of them, which `kept` then refers to.
class HiddenRoom {
 public:
  HiddenRoom(const std::vector<Chunk>& chunks, const at::Tensor& rows, std::int64_t hidden,
             at::Tensor* kept = nullptr) {
    if (kept != nullptr) {
      if (!kept->defined()) *kept = at::empty({rows.size(0), hidden}, rows.options());
      all_ = *kept;
      return;
    }
    std::int64_t most = 0;
    for (const Chunk& chunk : chunks) most = std::max(most, chunk.rows());
    room_ = at::empty({most, hidden}, rows.options());
  }
  at::Tensor For(const Chunk& chunk) const {
    return all_.defined() ? chunk.RowsOf(all_) : room_.narrow(0, 0, chunk.rows());
  }

 private:
  at::Tensor room_, all_;
};

void CheckShape(const char* what, const at::Tensor& tensor, at::IntArrayRef expected, bool may_be_undefined) {
  PLAIT_CHECK(tensor.defined() ? tensor.sizes() == expected : may_be_undefined)
      << what << " of experts: expected a tensor of shape " << expected;
}

void CheckExperts(const ExpertWeights& w, const at::Tensor& rows, Offsets offsets) {
  PLAIT_CHECK(w.in.defined() && w.in.dim() == 3 && rows.dim() == 2)
      << "weights (experts, hidden, width), rows (rows, width)";
  const std::int64_t experts = w.in.size(0), hidden = w.in.size(1), width = w.in.size(2);
  PLAIT_CHECK(static_cast<std::int64_t>(offsets.size()) == experts + 1 && offsets.front() == 0 &&
              offsets.back() == rows.size(0) && std::is_sorted(offsets.begin(), offsets.end()))
      << "offsets of " << experts << " experts: expected " << experts + 1 << " that ascend from 0 to "
      << rows.size(0);
  CheckShape("rows", rows, {rows.size(0), width}, false);
  CheckShape("in_bias", w.in_bias, {experts, hidden}, true);
  CheckShape("gate", w.gate, {experts, hidden, width}, true);
  CheckShape("gate_bias", w.gate_bias, {experts, hidden}, true);
  CheckShape("out", w.out, {experts, width, hidden}, false);
  CheckShape("out_bias", w.out_bias, {experts, width}, true);
}

GroupKernels KernelsOf(const ExpertsOptions& options) {
  return options.backend == ExpertBackend::kLoop ? GroupKernels::kLoop : GroupKernels::kBest;
}

// In a gated expert the activation applies to the gate, and `in` is the factor.
rowwise::ActivationInputs ActivationOf(Activation f, const at::Tensor& in, const at::Tensor& gate) {
  return gate.defined() ? rowwise::ActivationInputs{f, gate, in} : rowwise::ActivationInputs{f, in};
}

at::Tensor EmptyLike(const at::Tensor& tensor) {
  return tensor.defined() ? at::empty_like(tensor, at::MemoryFormat::Contiguous) : tensor;
}

// Writes the gradients of one weight and its bias (undefined: none) from those of its product's results.
void AddLayerGradients(const Chunk& chunk, const at::Tensor& of_results, const at::Tensor& inputs,
                       const at::Tensor& of_weight, const at::Tensor& of_bias, GroupKernels kernels) {
  linear::GroupWeightGradients(of_results, inputs, chunk.offsets, chunk.ExpertsOf(of_weight), kernels);
  if (!of_bias.defined()) return;
  linear::GroupBiasGradients(of_results, chunk.offsets, chunk.ExpertsOf(of_bias), kernels);
}

}  // namespace

at::Tensor ForwardExperts(const ExpertsOptions& options, const ExpertWeights& weights, const at::Tensor& rows,
                          Offsets offsets, SavedExperts* saved) {
  const at::NoGradGuard not_recorded;
  CheckExperts(weights, rows, offsets);
  if (saved != nullptr) *saved = {.rows = rows};
  if (options.backend == ExpertBackend::kReference) {
    return ReferenceForward(options.activation, weights, rows, offsets);
  }
  const GroupKernels kernels = KernelsOf(options);
  const bool gated = weights.gate.defined();
  const std::int64_t hidden_size = weights.in.size(1);
  const std::vector<Chunk> chunks = ChunksOf(offsets, rows);
  const HiddenRoom room(chunks, rows, hidden_size),
      in_room(gated && saved == nullptr ? chunks : std::vector<Chunk>(), rows, hidden_size);
  if (saved != nullptr) {
    saved->in = at::empty({rows.size(0), hidden_size}, rows.options());
    if (gated) saved->gate = at::empty_like(saved->in);
  }
  const at::Tensor out = at::empty_like(rows, at::MemoryFormat::Contiguous);
  for (const Chunk& chunk : chunks) {
    const at::Tensor x = chunk.RowsOf(rows), hidden = room.For(chunk);
    const auto multiply = [&](const at::Tensor& from, const at::Tensor& weight, const at::Tensor& bias,
                              const at::Tensor& to) {
      linear::MultiplyGroups(from, chunk.ExpertsOf(weight).transpose(1, 2), chunk.offsets, to,
                             {.bias = chunk.ExpertsOf(bias)}, kernels);
    };
    // Nothing is saved: the activation is computed in place.
    const at::Tensor in = saved != nullptr ? chunk.RowsOf(saved->in) : gated ? in_room.For(chunk) : hidden;
    const at::Tensor gate = !gated ? at::Tensor() : saved != nullptr ? chunk.RowsOf(saved->gate) : hidden;
    multiply(x, weights.in, weights.in_bias, in);
    if (gated) multiply(x, weights.gate, weights.gate_bias, gate);
    rowwise::Activate(ActivationOf(options.activation, in, gate), hidden);
    multiply(hidden, weights.out, weights.out_bias, chunk.RowsOf(out));
  }
  return out;
}

ExpertGradients BackwardExperts(const ExpertsOptions& options, const ExpertWeights& weights,
                                const SavedExperts& saved, Offsets offsets, const at::Tensor& gradient,
                                const WantedGradients& wanted, HiddenGradients* kept) {
  const at::NoGradGuard not_recorded;
  CheckExperts(weights, saved.rows, offsets);
  CheckShape("gradients", gradient, saved.rows.sizes(), false);
  if (options.backend == ExpertBackend::kReference) {
    return ReferenceBackward(options.activation, weights, saved.rows, offsets, gradient, wanted);
  }
  const GroupKernels kernels = KernelsOf(options);
  const bool gated = weights.gate.defined();
  ExpertGradients of;
  if (wanted.rows) of.rows = at::empty_like(saved.rows, at::MemoryFormat::Contiguous);
  if (wanted.weights) {
    of.weights = {EmptyLike(weights.in),        EmptyLike(weights.in_bias), EmptyLike(weights.gate),
                  EmptyLike(weights.gate_bias), EmptyLike(weights.out),     EmptyLike(weights.out_bias)};
  }
  const at::Tensor of_out = gradient.contiguous();
  const std::vector<Chunk> chunks = ChunksOf(offsets, saved.rows), none;
  const std::int64_t hidden_size = weights.in.size(1);
  const bool has_kept = kept != nullptr && kept->in.defined();
  const HiddenRoom room(chunks, saved.rows, hidden_size, kept != nullptr ? &kept->in : nullptr),
      values_room(wanted.weights ? chunks : none, saved.rows, hidden_size),
      gate_room(gated ? chunks : none, saved.rows, hidden_size,
                gated && kept != nullptr ? &kept->gate : nullptr);
  for (const Chunk& chunk : chunks) {
    const at::Tensor of_y = chunk.RowsOf(of_out), x = chunk.RowsOf(saved.rows), of_in = room.For(chunk);
    // The activation's gradients overwrite its values.
    const at::Tensor of_gate = gated ? gate_room.For(chunk) : at::Tensor();
    const at::Tensor hidden = wanted.weights ? values_room.For(chunk) : at::Tensor();
    const rowwise::ActivationInputs activation =
        ActivationOf(options.activation, chunk.RowsOf(saved.in), chunk.RowsOf(saved.gate));
    if (has_kept) {
      if (wanted.weights) rowwise::Activate(activation, hidden);
    } else {
      linear::MultiplyGroups(of_y, chunk.ExpertsOf(weights.out), chunk.offsets, of_in, {}, kernels);
      rowwise::ActivateBackward(
          activation, of_in,
          {.of_x = gated ? of_gate : of_in, .of_factor = gated ? of_in : at::Tensor(), .y = hidden});
    }
    if (wanted.weights) {
      AddLayerGradients(chunk, of_y, hidden, of.weights.out, of.weights.out_bias, kernels);
      AddLayerGradients(chunk, of_in, x, of.weights.in, of.weights.in_bias, kernels);
      if (gated) AddLayerGradients(chunk, of_gate, x, of.weights.gate, of.weights.gate_bias, kernels);
    }
    if (!wanted.rows) continue;
    const at::Tensor of_x = chunk.RowsOf(of.rows);
    linear::MultiplyGroups(of_in, chunk.ExpertsOf(weights.in), chunk.offsets, of_x, {}, kernels);
    if (!gated) continue;
    linear::MultiplyGroups(of_gate, chunk.ExpertsOf(weights.gate), chunk.offsets, of_x, {.adds_to_out = true},
                           kernels);
  }
  return of;
}

}  // namespace plait::moe
