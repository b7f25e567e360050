// bf16 and f16 as bits, to and from float32. Narrowing rounds to nearest, ties to even.
#ifndef PLAIT_COMM_HALF_PRECISION_H_
#define PLAIT_COMM_HALF_PRECISION_H_

#include "comm/buffer.h"

namespace plait::comm {

// `out` holds in.count floats; `in` is bf16 or f16.
void Widen(ConstBuffer in, float* out);
void Narrow(const float* in, Buffer out);

}  // namespace plait::comm

#endif  // PLAIT_COMM_HALF_PRECISION_H_
