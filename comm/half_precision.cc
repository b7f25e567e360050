#include "comm/half_precision.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace plait::comm {
namespace {

float FromBFloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t ToBFloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // stays a NaN
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The compiler's conversions follow IEEE 754 and use the processor's instructions where it has them.
float FromFloat16(std::uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
std::uint16_t ToFloat16(float value) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)); }

template <float (*kConvert)(std::uint16_t)>
void WidenAll(ConstBuffer in, float* out) {
  const auto* values = static_cast<const std::uint16_t*>(in.data);
  for (std::int64_t i = 0; i < in.count; ++i) out[i] = kConvert(values[i]);
}

template <std::uint16_t (*kConvert)(float)>
void NarrowAll(const float* in, Buffer out) {
  auto* values = static_cast<std::uint16_t*>(out.data);
  for (std::int64_t i = 0; i < out.count; ++i) values[i] = kConvert(in[i]);
}

}  // namespace

void Widen(ConstBuffer in, float* out) {
  in.type == DataType::kBFloat16 ? WidenAll<FromBFloat16>(in, out) : WidenAll<FromFloat16>(in, out);
}

void Narrow(const float* in, Buffer out) {
  out.type == DataType::kBFloat16 ? NarrowAll<ToBFloat16>(in, out) : NarrowAll<ToFloat16>(in, out);
}

}  // namespace plait::comm
