#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "comm/tensor_collectives.h"
#include "parallel/context/attention_part.h"
#include "parallel/context/fused_attention.h"
#include "parallel/context/ring_attention.h"
#include "parallel/tensor/recorded_value.h"

namespace plait::context_parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Ring {
  ContextAxis axis;
  AttentionOptions options;

  int next() const { return (axis.rank() + 1) % axis.size(); }
  int previous() const { return (axis.rank() + axis.size() - 1) % axis.size(); }
};

// Sends a tensor to the next rank and receives the one of the previous rank.
class Shift {
 public:
  Shift(const Ring& ring, const at::Tensor& sent, int tag)
      : sent_(sent.contiguous()), received_(at::empty_like(sent_)) {
    const comm::Communicator& ranks = ring.axis.comm();
    if (sent_.is_cpu() || sent_.is_meta()) {
      works_.push_back(comm::ReceiveAsync(ranks, received_, ring.previous(), tag));
      works_.push_back(comm::SendAsync(ranks, sent_, ring.next(), tag));
    } else {
      // Between GPUs messages go through host memory (comm/nccl), collectives do not.
      std::vector<std::int64_t> sends(static_cast<std::size_t>(ranks.size())), receives = sends;
      sends[static_cast<std::size_t>(ring.next())] = sent_.size(0);
      receives[static_cast<std::size_t>(ring.previous())] = sent_.size(0);
      works_.push_back(comm::AllToAllVAsync(ranks, sent_, sends, received_, receives));
    }
  }
  at::Tensor Wait() {
    for (comm::TensorWork& work : works_) work.Wait();
    return received_;
  }

 private:
  at::Tensor sent_, received_;
  std::vector<comm::TensorWork> works_;
};

// The positions of the tokens of `rank`, if every rank has `local` of them.
at::Tensor PositionsOf(const Ring& ring, int rank, std::int64_t local, at::Device device) {
  const std::int64_t chunk = local / 2, last = 2 * ring.axis.size() - 1 - rank;
  const auto options = at::TensorOptions(at::kLong).device(device);
  return at::cat({at::arange(rank * chunk, (rank + 1) * chunk, options),
                  at::arange(last * chunk, (last + 1) * chunk, options)});
}

at::Tensor PerKeyHead(const at::Tensor& gradient, std::int64_t count) {
  if (gradient.size(1) == count) return gradient;
  const auto s = gradient.sizes();
  return gradient.view({s[0], count, s[1] / count, s[2], s[3]}).sum(2);
}

// Which queries of this rank attend to which keys of rank `from`. Under a causal mask, either the late chunk of queries
// attends to all keys, or all queries attend to the early chunk of keys. Otherwise all queries attend to the keys
// before the end of the sequence, which come first.
struct PartRanges {
  std::int64_t first_query = 0, queries = 0, keys = 0;
};
PartRanges RangesOf(const Ring& ring, int from, std::int64_t local) {
  const std::int64_t chunk = local / 2;
  if (!ring.options.causal) {
    const auto before_end = [&](std::int64_t of_chunk) {
      return std::clamp<std::int64_t>(ring.options.length - of_chunk * chunk, 0, chunk);
    };
    return {0, local, before_end(from) + before_end(2 * ring.axis.size() - 1 - from)};
  }
  if (from == ring.axis.rank()) return {0, local, local};
  return from < ring.axis.rank() ? PartRanges{0, local, chunk} : PartRanges{chunk, chunk, local};
}

PartInput PartOf(const Ring& ring, int from, const at::Tensor& queries, const at::Tensor& keys_values) {
  const std::int64_t local = queries.size(2), heads = queries.size(1);
  const PartRanges r = RangesOf(ring, from, local);
  return {
      .queries = queries.narrow(2, r.first_query, r.queries),
      .keys = PerQueryHead(keys_values[0].narrow(2, 0, r.keys), heads),
      .values = PerQueryHead(keys_values[1].narrow(2, 0, r.keys), heads),
      .causal = ring.options.causal && from == ring.axis.rank(),
      .query_positions =
          PositionsOf(ring, ring.axis.rank(), local, queries.device()).narrow(0, r.first_query, r.queries),
      .key_positions = PositionsOf(ring, from, local, queries.device()).narrow(0, 0, r.keys),
      .length = ring.options.length,
      .dropout = ring.options.dropout};
}

// Calls part(from, keys and values of rank `from`) for all ranks, this rank first.
template <typename Part>
void ForAllKeys(const Ring& ring, at::Tensor keys_values, const Part& part) {
  for (int step = 0; step < ring.axis.size(); ++step) {
    const int from = (ring.axis.rank() + ring.axis.size() - step) % ring.axis.size();
    if (step + 1 == ring.axis.size()) {
      part(from, keys_values);
      return;
    }
    Shift shift(ring, keys_values, /*tag=*/2 * step);
    part(from, keys_values);
    keys_values = shift.Wait();
  }
}

struct RingFunction : torch::autograd::Function<RingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const Ring& ring) {
    const at::Tensor keys_values = at::stack({key, value});
    const at::ScalarType type = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    PartOutput sum = {at::zeros(query.sizes(), query.options().dtype(type)),
                      at::full(query.sizes().slice(0, 3), -std::numeric_limits<double>::infinity(),
                               query.options().dtype(type))};
    ForAllKeys(ring, keys_values, [&](int from, const at::Tensor& keys) {
      const PartRanges r = RangesOf(ring, from, query.size(2));
      if (r.keys == 0) return;
      PartOutput seen = {sum.out.narrow(2, r.first_query, r.queries),
                         sum.log_sum.narrow(2, r.first_query, r.queries)};
      Merge(AttendToPart(PartOf(ring, from, query, keys)), seen);
    });
    context->save_for_backward({query, keys_values, sum.out, sum.log_sum});
    tensor_parallel::Record(*context, ring);
    return sum.out.to(query.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    CheckOnce();
    const Ring& ring = tensor_parallel::Recorded<Ring>(*context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], &keys_values = saved[1], &out = saved[2], &log_sum = saved[3];
    at::Tensor of_query = at::zeros_like(out);
    // `travelling`: gradients of other ranks' keys, which follow the keys around the ring back to their owner.
    at::Tensor own, travelling;
    ForAllKeys(ring, keys_values, [&](int from, const at::Tensor& keys) {
      const PartRanges r = RangesOf(ring, from, query.size(2));
      const auto rows = [&r](const at::Tensor& x) { return x.narrow(2, r.first_query, r.queries); };
      at::Tensor of_keys = at::zeros(keys.sizes(), out.options());
      if (r.keys > 0) {
        const PartGradients part =
            GradientsOfPart(PartOf(ring, from, query, keys), rows(gradients[0]), {rows(out), rows(log_sum)});
        rows(of_query).add_(part.queries);
        of_keys[0].narrow(2, 0, r.keys).copy_(PerKeyHead(part.keys, keys.size(2)));
        of_keys[1].narrow(2, 0, r.keys).copy_(PerKeyHead(part.values, keys.size(2)));
      }
      if (from == ring.axis.rank()) {
        own = of_keys;
        return;
      }
      if (travelling.defined()) of_keys.add_(Shift(ring, travelling, /*tag=*/1).Wait());
      travelling = of_keys;
    });
    own.add_(Shift(ring, travelling, /*tag=*/1).Wait());
    return {
        of_query.to(query.scalar_type()), own[0].to(query.scalar_type()), own[1].to(query.scalar_type()), {}};
  }
};

}  // namespace

at::Tensor RingAttention(const ContextAxis& axis, const at::Tensor& query, const at::Tensor& key,
                         const at::Tensor& value, const AttentionOptions& options) {
  return RingFunction::apply(query, key, value, Ring{axis, options});
}

}  // namespace plait::context_parallel
