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

constexpr Index kBlockRows = 32;  // queries whose later keys are skipped together

constexpr Index Padded(Index count) { return (count + kWide - 1) / kWide * kWide; }

// Room for what a pass keeps, from one allocation. Inner sizes of all products are `seq` or `width`, rows of
// their left operands at most kBlockRows.
template <typename Elements>
struct HeadRoom {
  HeadRoom(Index seq, Index width) : stride(Padded(seq)) {
    const Index longest = seq > width ? seq : width, kept = kBlockRows * Padded(longest);
    all = RoomFor(linear::PanelRoom<Elements>(longest) + kept + (kBlockRows + seq) * stride);
    left = all.get() + linear::PanelRoom<Elements>(longest);
    scores = left + kept;
    of_scores = scores + kBlockRows * stride;
  }

  Room all;  // begins with the panel
  Index stride;
  float* left;
  float* scores;     // (kBlockRows, stride)
  float* of_scores;  // (seq, stride)
};

// out (rows, columns) = left (rows, inner) right (inner, columns)
template <typename Elements, typename OutElements = Elements>
void Multiply(Index rows, Index inner, Index columns, const Matrix<typename Elements::Type>& left,
              const Matrix<typename Elements::Type>& right, typename OutElements::Type* out, Index out_stride,
              const HeadRoom<Elements>& room) {
  using Kind = ProductKind<Elements, OutElements>;
  const typename Kind::Product product{.rows = rows,
                                       .columns = columns,
                                       .inner = inner,
                                       .left = left,
                                       .right = right,
                                       .out = out,
                                       .out_stride = out_stride};
  linear::ComputePanels<Kind>(product, linear::LeftOf<Elements>(product, room.left), 0,
                              linear::Panels(columns), room.all.get());
}

PLAIT_INLINE float Sum(WideF32 v) {
  return simd::Fold(v, [](WideF32 a, WideF32 b) { return a + b; });
}
PLAIT_INLINE float Largest(WideF32 v) {
  return simd::Fold(v, [](WideF32 a, WideF32 b) { return a > b ? a : b; });
}

// The first `seen` of `scores`, which are overwritten, to probabilities; zeros from there to `end`. `scores`
// has room for whole vectors.
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
    const auto counts = y > least;
    y = counts ? y : least;
    const simd::ScaledExp<WideF32> e = simd::Exp(y);
    const WideF32 value = counts ? simd::Fma(e.scale, e.p, e.scale) : WideF32{};
    simd::Store(scores + j, value);
    sum += value;
  }
  const WideF32 inverse = simd::Splat<WideF32>(1 / Sum(sum));
  for (Index j = 0; j < end; j += kWide) {
    const WideF32 value = j < padded ? simd::Load<WideF32>(scores + j) * inverse : WideF32{};
    Elements::Store(to + j, end - j, value);
  }
}

template <typename Elements>
void Forward(const HeadForward<typename Elements::Type>& h) {
  const HeadRoom<Elements> room(h.seq, h.width);
  for (Index first = 0; first < h.seq; first += kBlockRows) {
    const Index rows = Least(kBlockRows, h.seq - first), end = h.causal ? first + rows : h.seq;
    Multiply<Elements, simd::FloatElements>(rows, h.width, end,
                                            {h.query.data + first * h.query.stride, h.query.stride, 1},
                                            {h.key.data, 1, h.key.stride}, room.scores, room.stride, room);
    typename Elements::Type* probabilities = h.probabilities + first * h.seq;
    for (Index i = 0; i < rows; ++i) {
      SoftmaxRow<Elements>(room.scores + i * room.stride, h.causal ? first + i + 1 : end, end, h.scale,
                           probabilities + i * h.seq);
    }
    Multiply<Elements>(rows, end, h.width, {probabilities, h.seq, 1}, {h.value.data, h.value.stride, 1},
                       h.out.data + first * h.out.stride, h.out.stride, room);
  }
}

// Gradient of a row's scores, before scaling of q k, from that of its probabilities.
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

template <typename Elements>
void Backward(const HeadBackward<typename Elements::Type>& h) {
  using T = typename Elements::Type;
  const HeadRoom<Elements> room(h.seq, h.width);
  T* of_scores = reinterpret_cast<T*>(room.of_scores);
  for (Index first = 0; first < h.seq; first += kBlockRows) {
    const Index rows = Least(kBlockRows, h.seq - first), end = h.causal ? first + rows : h.seq;
    Multiply<Elements, simd::FloatElements>(
        rows, h.width, end, {h.of_out.data + first * h.of_out.stride, h.of_out.stride, 1},
        {h.value.data, 1, h.value.stride}, room.scores, room.stride, room);
    for (Index i = 0; i < rows; ++i) {
      SoftmaxRowGradient<Elements>(room.scores + i * room.stride, h.probabilities + (first + i) * h.seq, end,
                                   h.scale, of_scores + (first + i) * h.seq);
    }
    Multiply<Elements>(rows, end, h.width, {of_scores + first * h.seq, h.seq, 1},
                       {h.key.data, h.key.stride, 1}, h.of_query.data + first * h.of_query.stride,
                       h.of_query.stride, room);
  }
  // Keys [first, first + rows) are seen by queries from `seen` on.
  for (Index first = 0; first < h.seq; first += kBlockRows) {
    const Index rows = Least(kBlockRows, h.seq - first), seen = h.causal ? first : 0, queries = h.seq - seen;
    Multiply<Elements>(rows, queries, h.width, {of_scores + seen * h.seq + first, 1, h.seq},
                       {h.query.data + seen * h.query.stride, h.query.stride, 1},
                       h.of_key.data + first * h.of_key.stride, h.of_key.stride, room);
    Multiply<Elements>(rows, queries, h.width, {h.probabilities + seen * h.seq + first, 1, h.seq},
                       {h.of_out.data + seen * h.of_out.stride, h.of_out.stride, 1},
                       h.of_value.data + first * h.of_value.stride, h.of_value.stride, room);
  }
}

}  // namespace
}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_KERNELS_COMPUTE_HEAD_H_
