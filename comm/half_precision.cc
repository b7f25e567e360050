#include "comm/half_precision.h"

#include <bit>
#include <cstdint>

namespace plait::comm {
namespace {

float FromBFloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t ToBFloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t nan = (bits >> 16) | 0x40;  // stays a NaN
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

// IEEE 754 binary16 in integer arithmetic (F. Giesen, "half to float done quic", 2012): without F16C, compilers emit a
// slow library call per value. All cases are computed and one is selected, so that the loops vectorise.
std::uint32_t Choose(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = -static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}
constexpr std::uint32_t Exponent(int exponent) { return static_cast<std::uint32_t>(exponent + 127) << 23; }

float FromFloat16(std::uint16_t bits) {
  constexpr std::uint32_t kLeastNormal = 0x0400, kInfinity = 0x7c00;
  const std::uint32_t magnitude = bits & 0x7fffu, sign = (bits & 0x8000u) << 16;
  const std::uint32_t normal = (magnitude << 13) + Exponent(-15);
  const std::uint32_t special = normal + Exponent(-15);
  const float offset = std::bit_cast<float>(Exponent(-14));
  const float subnormal = std::bit_cast<float>((magnitude << 13) + Exponent(-14)) - offset;
  const std::uint32_t wide = Choose(magnitude < kLeastNormal, std::bit_cast<std::uint32_t>(subnormal),
                                    Choose(magnitude >= kInfinity, special, normal));
  return std::bit_cast<float>(wide | sign);
}

std::uint16_t ToFloat16(float value) {
  constexpr std::uint32_t kInfinity = 0x7f800000;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff, sign = (bits >> 16) & 0x8000;
  const std::uint32_t odd = (magnitude >> 13) & 1;
  const std::uint32_t normal = (magnitude - Exponent(-15) + 0xfff + odd) >> 13;
  // The sum with 0.5 has the spacing of subnormal f16, 2^-24: it is rounded to that, and its low bits are the result.
  const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(Exponent(-1));
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - Exponent(-1);
  const std::uint32_t special = Choose(magnitude > kInfinity, 0x7e00 | ((magnitude >> 13) & 0x3ff), 0x7c00);
  const std::uint32_t narrow =
      Choose(magnitude < Exponent(-14), subnormal, Choose(magnitude >= Exponent(16), special, normal));
  return static_cast<std::uint16_t>(narrow | sign);
}

template <float (*kConvert)(std::uint16_t)>
void WidenAll(ConstBuffer in, float* out) {
  auto* __restrict to = out;
  const auto* values = static_cast<const std::uint16_t*>(in.data);
  for (std::int64_t i = 0; i < in.count; ++i) to[i] = kConvert(values[i]);
}

template <std::uint16_t (*kConvert)(float)>
void NarrowAll(const float* in, Buffer out) {
  const auto* __restrict from = in;
  auto* values = static_cast<std::uint16_t*>(out.data);
  for (std::int64_t i = 0; i < out.count; ++i) values[i] = kConvert(from[i]);
}

}  // namespace

void Widen(ConstBuffer in, float* out) {
  in.type == DataType::kBFloat16 ? WidenAll<FromBFloat16>(in, out) : WidenAll<FromFloat16>(in, out);
}

void Narrow(const float* in, Buffer out) {
  out.type == DataType::kBFloat16 ? NarrowAll<ToBFloat16>(in, out) : NarrowAll<ToFloat16>(in, out);
}

}  // namespace plait::comm
