// The passes of head.h, for one family of processors; a .cc includes the family's header (models/simd), then
// this file.
#ifndef PLAIT_MODELS_ATTENTION_KERNELS_COMPUTE_HEAD_H_
#define PLAIT_MODELS_ATTENTION_KERNELS_COMPUTE_HEAD_H_

#include <limits>

#include "models/attention/kernels/head.h"
#include "models/linear/kernels/multiply.h"
#include "models/simd/float_elements.h"
#include "models/simd/fold.h"

namespace plait::attention {
namespace {

using linear::kWide;
using linear::Least;
using linear::Matrix;
using linear::ProductKind;
using linear::Room;
using linear::RoomFor;
using simd::Index;
using simd::WideF32;

constexpr Index kBlockRows = 32;  // queries per block; later keys are skipped block by block

constexpr Index Padded(Index count) { return (count + kWide - 1) / kWide * kWide; }

// Size in floats of a right operand (inner, columns) packed in panels.
template <typename Elements>
constexpr Index PanelsRoom(Index inner, Index columns) {
  return linear::Panels(columns) * linear::Places<Elements>(inner) * linear::kPanelColumns;
}

// Scratch memory of a pass, from one allocation. Inner sizes of all products are `seq` or `width`; left operands have
// at most kBlockRows rows.
template <typename Elements>
struct HeadRoom {
  // `gradients`: for a backward pass.
  HeadRoom(Index seq, Index width, bool gradients) : stride(Padded(seq)), sum_stride(Padded(width)) {
    const Index across = PanelsRoom<Elements>(width, seq), down = PanelsRoom<Elements>(seq, width);
    const Index kept = kBlockRows * Padded(seq > width ? seq : width), sum = seq * sum_stride;
    all = RoomFor(across + down + kept + kBlockRows * stride +
                  (gradients ? 2 * down + seq * stride + 2 * sum : 0));
    for_scores = all.get();
    for_queries = for_scores + across;
    left = for_queries + down;
    scores = left + kept;
    for_keys = scores + kBlockRows * stride;
    for_values = for_keys + down;
    of_scores = for_values + down;
    of_key = of_scores + seq * stride;
    of_value = of_key + sum;
  }

  Room all;
  Index stride, sum_stride;
  // Packed right operands of the products for: scores or gradients of probabilities; results or gradients of queries;
  // gradients of keys; gradients of values.
  float *for_scores, *for_queries, *for_keys, *for_values;
  float* left;
  float* scores;             // (kBlockRows, stride)
  float* of_scores;          // (seq, stride)
  float *of_key, *of_value;  // (seq, sum_stride) each
};

// Packs a right operand once for all blocks of left rows.
template <typename Elements>
void Pack(Index inner, Index columns, const Matrix<typename Elements::Type>& right, float* to) {
  const linear::Product<typename Elements::Type> product{
      .columns = columns, .inner = inner, .left = {}, .right = right};
  const Index places = linear::Places<Elements>(inner);
  for (Index column = 0; column < columns; column += linear::kPanelColumns) {
    const Index count = Least(columns - column, linear::kPanelColumns);
    linear::PackPanel<Elements>(product, 0, places, column, count,
                                count <= kWide ? kWide : linear::kPanelColumns, to);
    to += places * linear::kPanelColumns;
  }
}

// A right operand made by Pack, with `packed` places in k, from element `first` of k on.
struct Packed {
  const float* panels;
  Index packed;
  Index first = 0;
};

// out (rows, columns) = left (rows, inner) right (inner, columns), or += if `adds`. `columns`: all packed columns, or
// whole panels of them. `right.first` is even.
template <typename Elements, typename OutElements = Elements>
void Multiply(Index rows, Index inner, Index columns, const Matrix<typename Elements::Type>& left,
              const Packed& right, typename OutElements::Type* out, Index out_stride, float* left_room,
              bool adds = false) {
  using Kind = ProductKind<Elements, OutElements>;
  const typename Kind::Product product{.rows = rows,
                                       .columns = columns,
                                       .inner = inner,
                                       .left = left,
                                       .right = {},
                                       .out = out,
                                       .out_stride = out_stride,
                                       .residual = adds ? out : nullptr};
  const linear::LeftPlaces places = linear::LeftOf<Elements>(product, left_room);
  linear::PanelWork<Kind> work{
      .product = &product, .left = &places, .panel = nullptr, .places = linear::Places<Elements>(inner)};
  const float* panel = right.panels;
  for (; work.column < columns; work.column += linear::kPanelColumns) {
    const bool narrow = columns - work.column <= kWide;
    work.panel = panel + right.first / Elements::Products::kPair * (narrow ? kWide : linear::kPanelColumns);
    narrow ? linear::ComputePanel<Kind, 1>(work, rows, {}) : linear::ComputePanel<Kind, 2>(work, rows, {});
    panel += right.packed * linear::kPanelColumns;
  }
}

PLAIT_INLINE float Sum(WideF32 v) {
  return simd::Fold(v, [](WideF32 a, WideF32 b) { return a + b; });
}
PLAIT_INLINE float Largest(WideF32 v) {
  return simd::Fold(v, [](WideF32 a, WideF32 b) { return a > b ? a : b; });
}

// Softmax of the first `seen` scores; probabilities from there to `end` are zero. Overwrites `scores`, which has room
// for whole vectors.
template <typename Elements>
void SoftmaxRow(float* scores, Index seen, Index end, float scale, typename Elements::Type* to) {
  const Index padded = Padded(seen);
  for (Index j = seen; j < padded; ++j) scores[j] = -std::numeric_limits<float>::infinity();
  WideF32 largest = simd::Load<WideF32>(scores);
  for (Index j = kWide; j < padded; j += kWide) {
    const WideF32 v = simd::Load<WideF32>(scores + j);
    largest = v > largest ? v : largest;
  }
  const WideF32 shift = simd::Splat<WideF32>(Largest(largest)), factor = simd::Splat<WideF32>(scale);
  const WideF32 least = simd::Splat<WideF32>(-simd::ExpConstants<float>::kLargest);
  WideF32 sum{};
  for (Index j = 0; j < padded; j += kWide) {
    WideF32 y = (simd::Load<WideF32>(scores + j) - shift) * factor;
    const auto vanishes = y < least;  // not a NaN
    y = vanishes ? least : y;
    const simd::ScaledExp<WideF32> e = simd::Exp(y);
    const WideF32 value = vanishes ? WideF32{} : simd::Fma(e.scale, e.p, e.scale);
    simd::Store(scores + j, value);
    sum += value;
  }
  const WideF32 inverse = simd::Splat<WideF32>(1 / Sum(sum));
  for (Index j = 0; j < end; j += kWide) {
    const WideF32 value = j < padded ? simd::Load<WideF32>(scores + j) * inverse : WideF32{};
    Elements::Store(to + j, end - j, value);
  }
}

// The arguments for query head `i` of a group.
template <typename Pass>
Pass QueryHead(Pass h, Index i) {
  h.query.data += i * h.width;
  h.probabilities += i * h.seq * h.seq;
  if constexpr (requires { h.of_query; }) {
    h.of_out.data += i * h.width;
    h.of_query.data += i * h.width;
  } else {
    h.out.data += i * h.width;
  }
  return h;
}

template <typename Elements>
void ForwardOfQueries(const HeadForward<typename Elements::Type>& h, const HeadRoom<Elements>& room) {
  const Packed keys = {room.for_scores, linear::Places<Elements>(h.width)},
               values = {room.for_queries, linear::Places<Elements>(h.seq)};
  for (Index first = 0; first < h.seq; first += kBlockRows) {
    const Index rows = Least(kBlockRows, h.seq - first), end = h.causal ? first + rows : h.seq;
    Multiply<Elements, simd::FloatElements>(rows, h.width, end,
                                            {h.query.data + first * h.query.stride, h.query.stride, 1}, keys,
                                            room.scores, room.stride, room.left);
    typename Elements::Type* probabilities = h.probabilities + first * h.seq;
    for (Index i = 0; i < rows; ++i) {
      SoftmaxRow<Elements>(room.scores + i * room.stride, h.causal ? first + i + 1 : end, end, h.scale,
                           probabilities + i * h.seq);
    }
    Multiply<Elements>(rows, end, h.width, {probabilities, h.seq, 1}, values,
                       h.out.data + first * h.out.stride, h.out.stride, room.left);
  }
}

template <typename Elements>
void Forward(const HeadForward<typename Elements::Type>& h) {
  const HeadRoom<Elements> room(h.seq, h.width, /*gradients=*/false);
  Pack<Elements>(h.width, h.seq, {h.key.data, 1, h.key.stride}, room.for_scores);
  Pack<Elements>(h.seq, h.width, {h.value.data, h.value.stride, 1}, room.for_queries);
  for (Index i = 0; i < h.group; ++i) ForwardOfQueries<Elements>(QueryHead(h, i), room);
}

// Gradient of a row of q k^T (unscaled scores) from that of its probabilities.
template <typename Elements>
void SoftmaxRowGradient(const float* of_probabilities, const typename Elements::Type* probabilities,
                        Index end, float scale, typename Elements::Type* to) {
  WideF32 sum{};
  for (Index j = 0; j < end; j += kWide) {
    sum = simd::Fma(simd::Load<WideF32>(of_probabilities + j, end - j),
                    Elements::Load(probabilities + j, end - j), sum);
  }
  const WideF32 mean = simd::Splat<WideF32>(Sum(sum)), factor = simd::Splat<WideF32>(scale);
  for (Index j = 0; j < end; j += kWide) {
    const WideF32 difference = simd::Load<WideF32>(of_probabilities + j, end - j) - mean;
    Elements::Store(to + j, end - j, difference * Elements::Load(probabilities + j, end - j) * factor);
  }
}

// Computes the gradients of scores, into room.of_scores, and of queries.
template <typename Elements>
void QueryGradients(const HeadBackward<typename Elements::Type>& h, const HeadRoom<Elements>& room) {
  using T = typename Elements::Type;
  const Packed values = {room.for_scores, linear::Places<Elements>(h.width)},
               keys = {room.for_queries, linear::Places<Elements>(h.seq)};
  T* of_scores = reinterpret_cast<T*>(room.of_scores);
  for (Index first = 0; first < h.seq; first += kBlockRows) {
    const Index rows = Least(kBlockRows, h.seq - first), end = h.causal ? first + rows : h.seq;
    Multiply<Elements, simd::FloatElements>(rows, h.width, end,
                                            {h.of_out.data + first * h.of_out.stride, h.of_out.stride, 1},
                                            values, room.scores, room.stride, room.left);
    for (Index i = 0; i < rows; ++i) {
      SoftmaxRowGradient<Elements>(room.scores + i * room.stride, h.probabilities + (first + i) * h.seq, end,
                                   h.scale, of_scores + (first + i) * h.seq);
    }
    Multiply<Elements>(rows, end, h.width, {of_scores + first * h.seq, h.seq, 1}, keys,
                       h.of_query.data + first * h.of_query.stride, h.of_query.stride, room.left);
  }
}

// Computes the gradients of keys and values. Under a causal mask keys [first, first + rows) are seen by queries from
// `seen` on.
template <typename Elements, typename OutElements>
void KeyGradients(const HeadBackward<typename Elements::Type>& h, const HeadRoom<Elements>& room,
                  const Rows<typename OutElements::Type>& of_key,
                  const Rows<typename OutElements::Type>& of_value, bool adds) {
  const auto* of_scores = reinterpret_cast<const typename Elements::Type*>(room.of_scores);
  const Index places = linear::Places<Elements>(h.seq);
  Pack<Elements>(h.seq, h.width, {h.query.data, h.query.stride, 1}, room.for_keys);
  Pack<Elements>(h.seq, h.width, {h.of_out.data, h.of_out.stride, 1}, room.for_values);
  for (Index first = 0; first < h.seq; first += kBlockRows) {
    const Index rows = Least(kBlockRows, h.seq - first), seen = h.causal ? first : 0, queries = h.seq - seen;
    Multiply<Elements, OutElements>(rows, queries, h.width, {of_scores + seen * h.seq + first, 1, h.seq},
                                    {room.for_keys, places, seen}, of_key.data + first * of_key.stride,
                                    of_key.stride, room.left, adds);
    Multiply<Elements, OutElements>(rows, queries, h.width,
                                    {h.probabilities + seen * h.seq + first, 1, h.seq},
                                    {room.for_values, places, seen}, of_value.data + first * of_value.stride,
                                    of_value.stride, room.left, adds);
  }
}

template <typename Elements>
void StoreRows(const float* from, Index stride, Index seq, Index width,
               const Rows<typename Elements::Type>& to) {
  for (Index i = 0; i < seq; ++i) {
    for (Index j = 0; j < width; j += kWide) {
      Elements::Store(to.data + i * to.stride + j, width - j, simd::Load<WideF32>(from + i * stride + j));
    }
  }
}

template <typename Elements>
void Backward(const HeadBackward<typename Elements::Type>& h) {
  const HeadRoom<Elements> room(h.seq, h.width, /*gradients=*/true);
  Pack<Elements>(h.width, h.seq, {h.value.data, 1, h.value.stride}, room.for_scores);
  Pack<Elements>(h.seq, h.width, {h.key.data, h.key.stride, 1}, room.for_queries);
  if (h.group == 1) {
    QueryGradients<Elements>(h, room);
    return KeyGradients<Elements, Elements>(h, room, h.of_key, h.of_value, /*adds=*/false);
  }
  // Sums over the group are float32, rounded once.
  for (Index i = 0; i < h.group; ++i) {
    const HeadBackward<typename Elements::Type> head = QueryHead(h, i);
    QueryGradients<Elements>(head, room);
    KeyGradients<Elements, simd::FloatElements>(head, room, {room.of_key, room.sum_stride},
                                                {room.of_value, room.sum_stride}, /*adds=*/i > 0);
  }
  StoreRows<Elements>(room.of_key, room.sum_stride, h.seq, h.width, h.of_key);
  StoreRows<Elements>(room.of_value, room.sum_stride, h.seq, h.width, h.of_value);
}

}  // namespace
}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_KERNELS_COMPUTE_HEAD_H_
