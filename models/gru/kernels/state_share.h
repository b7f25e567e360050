// How much of the candidate n a step of a GRU mixes into the state: h' = h + share (n - h).
#ifndef PLAIT_MODELS_GRU_KERNELS_STATE_SHARE_H_
#define PLAIT_MODELS_GRU_KERNELS_STATE_SHARE_H_

#include "models/gru/kernels/vectors.h"

namespace plait::gru {
namespace {

// x^n, n >= 1.
template <typename V>
PLAIT_INLINE V Power(V x, int n) {
  V result = x;
  for (int bit = 30 - __builtin_clz(n); bit >= 0; --bit) {
    result = result * result;
    if (n >> bit & 1) result = result * x;
  }
  return result;
}

template <typename V>
struct ShareAndSlope {
  V share;
  V slope;  // d share / d z
};

// h' = h + share (n - h); classic: share = dt (1 - z); implicit: share = dt (1 - z) / (1 + dt (1 - z)).
// With repeats, the weight of the old state is a power: 1 - share = (1 - dt (1 - z))^repeats or
// (1 + dt (1 - z))^-repeats.
template <typename Params, typename V>
PLAIT_INLINE ShareAndSlope<V> StateShare(const Params& p, V z) {
  const V one = Splat<V>(1);
  const V part = Splat<V>(p.dt) * (one - z);
  if (p.implicit) {
    const V inverse = one / (one + part);
    if (p.repeats == 1) return {part * inverse, Splat<V>(-p.dt) * inverse * inverse};
    const V kept = Power(inverse, p.repeats);
    return {one - kept, Splat<V>(-p.dt * p.repeats) * kept * inverse};
  }
  if (p.repeats == 1) return {part, Splat<V>(-p.dt)};
  const V before_last = Power(one - part, p.repeats - 1);
  return {one - before_last * (one - part), Splat<V>(-p.dt * p.repeats) * before_last};
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_STATE_SHARE_H_
