#include "models/attention/head_passes.h"

#include <cmath>
#include <type_traits>

#include "base/parallel_for.h"
#include "models/attention/kernels/head.h"

namespace plait::attention {
namespace {

// The cost of a score for ParallelFor: a dot product, an exponential, and a share of the sum over values.
constexpr std::int64_t kNumbersOfScore = 4;

// Calls run(T{}) with the element type of the kernels.
template <typename Run>
void WithType(const at::Tensor& rows, const Run& run) {
  if (rows.is_meta()) return;
  rows.scalar_type() == at::kFloat ? run(float{}) : run(BFloat16{});
}

template <typename T>
T* DataOf(const at::Tensor& rows) {
  return static_cast<T*>(rows.mutable_data_ptr());
}

// Sizes of one sequence and of one head.
struct HeadSizes {
  HeadSizes(const HeadRows& rows, const AttentionSizes& sizes)
      : seq(rows.query.size(0) / sizes.batch),
        width(rows.query.size(1) / sizes.heads),
        group(sizes.heads / sizes.KeyHeads()),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(width)))) {}
  std::int64_t seq, width, group;
  float scale;
};

// Of one head over one sequence.
template <typename T>
Rows<T> HeadOf(const at::Tensor& rows, const HeadSizes& s, std::int64_t sequence, std::int64_t head) {
  const std::int64_t stride = rows.stride(0);
  return {DataOf<std::remove_const_t<T>>(rows) + sequence * s.seq * stride + head * s.width, stride};
}

// Calls body(sequence, head) for `heads` of each sequence, of `count` query heads each.
template <typename Body>
void ForHeads(std::int64_t batch, std::int64_t heads, std::int64_t count, std::int64_t seq,
              const Body& body) {
  ParallelFor(batch * heads, kNumbersOfScore * count * seq * seq, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) body(i / heads, i % heads);
  });
}

}  // namespace

bool HasOwnKernels(const at::Tensor& rows) {
  if (!rows.is_cpu() && !rows.is_meta()) return false;
  if (rows.scalar_type() == at::kFloat) return UsableHeads<float>() != nullptr;
  return rows.scalar_type() == at::kBFloat16 && UsableHeads<BFloat16>() != nullptr;
}

void ForwardHeads(const HeadRows& rows, const AttentionSizes& sizes, const at::Tensor& probabilities,
                  const at::Tensor& out) {
  const HeadSizes s(rows, sizes);
  WithType(out, [&]<typename T>(T) {
    ForHeads(sizes.batch, sizes.KeyHeads(), s.group, s.seq, [&](std::int64_t sequence, std::int64_t key) {
      const std::int64_t head = key * s.group, of_head = (sequence * sizes.heads + head) * s.seq * s.seq;
      UsableHeads<T>()->forward({.group = s.group,
                                 .seq = s.seq,
                                 .width = s.width,
                                 .causal = sizes.causal,
                                 .scale = s.scale,
                                 .query = HeadOf<const T>(rows.query, s, sequence, head),
                                 .key = HeadOf<const T>(rows.key, s, sequence, key),
                                 .value = HeadOf<const T>(rows.value, s, sequence, key),
                                 .out = HeadOf<T>(out, s, sequence, head),
                                 .probabilities = DataOf<T>(probabilities) + of_head});
    });
  });
}

void BackwardHeads(const HeadRows& rows, const AttentionSizes& sizes, const at::Tensor& probabilities,
                   const at::Tensor& of_out, const HeadRows& of) {
  const HeadSizes s(rows, sizes);
  WithType(of_out, [&]<typename T>(T) {
    ForHeads(sizes.batch, sizes.KeyHeads(), s.group, s.seq, [&](std::int64_t sequence, std::int64_t key) {
      const std::int64_t head = key * s.group, of_head = (sequence * sizes.heads + head) * s.seq * s.seq;
      UsableHeads<T>()->backward({.group = s.group,
                                  .seq = s.seq,
                                  .width = s.width,
                                  .causal = sizes.causal,
                                  .scale = s.scale,
                                  .query = HeadOf<const T>(rows.query, s, sequence, head),
                                  .key = HeadOf<const T>(rows.key, s, sequence, key),
                                  .value = HeadOf<const T>(rows.value, s, sequence, key),
                                  .probabilities = DataOf<T>(probabilities) + of_head,
                                  .of_out = HeadOf<const T>(of_out, s, sequence, head),
                                  .of_query = HeadOf<T>(of.query, s, sequence, head),
                                  .of_key = HeadOf<T>(of.key, s, sequence, key),
                                  .of_value = HeadOf<T>(of.value, s, sequence, key)});
    });
  });
}

void RotateHeads(const at::Tensor& rows, std::int64_t batch, std::int64_t heads, const RotaryTables& tables,
                 bool back, const at::Tensor& out) {
  WithType(out, [&]<typename T>(T) {
    const RotatedHeads<T> pass{.seq = rows.size(0) / batch,
                               .heads = heads,
                               .width = rows.size(1) / heads,
                               .back = back,
                               .cosines = tables.cosines.const_data_ptr<float>(),
                               .sines = tables.sines.const_data_ptr<float>(),
                               .x = {DataOf<T>(rows), rows.stride(0)},
                               .out = {DataOf<T>(out), out.stride(0)}};
    ParallelFor(rows.size(0), rows.size(1),
                [&](std::int64_t first, std::int64_t last) { UsableHeads<T>()->rotate(pass, first, last); });
  });
}

}  // namespace plait::attention
