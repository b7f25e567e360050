#include "base/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace plait::base {
namespace {

constexpr int kDigitBits = 32, kMantissaBits = 52, kLeastExponent = -1074;
constexpr std::uint64_t kDigit = (std::uint64_t{1} << kDigitBits) - 1;
constexpr std::uint64_t kNotFinite = 0x7ff;
// Each adds less than 2^33 to a limb.
constexpr std::int64_t kMostAdds = std::int64_t{1} << 29;

}  // namespace

void ExactSum::Add(double term) {
  const auto bits = std::bit_cast<std::uint64_t>(term);
  const std::uint64_t exponent = bits >> kMantissaBits & kNotFinite;
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  if (exponent == kNotFinite) {
    ++limbs_[kDigits];
    return;
  }
  if (exponent > 0) mantissa |= std::uint64_t{1} << kMantissaBits;
  const std::uint64_t shift = exponent > 0 ? exponent - 1 : 0;  // of the mantissa, from 2^-1074
  const std::size_t first = shift / kDigitBits;
  const std::uint64_t low = (mantissa & kDigit) << shift % kDigitBits;
  const std::uint64_t high = (mantissa >> kDigitBits) << shift % kDigitBits;
  const std::int64_t sign = std::signbit(term) ? -1 : 1;
  limbs_[first] += sign * static_cast<std::int64_t>(low & kDigit);
  limbs_[first + 1] += sign * static_cast<std::int64_t>((low >> kDigitBits) + (high & kDigit));
  limbs_[first + 2] += sign * static_cast<std::int64_t>(high >> kDigitBits);
  if (++adds_ == kMostAdds) static_cast<void>(Limbs());
}

absl::Span<std::int64_t> ExactSum::Limbs() {
  Carry(limbs_);
  adds_ = 0;
  return absl::MakeSpan(limbs_);
}

// Digits from 0 to 2^32 - 1; the last one has the sign.
void ExactSum::Carry(Digits& digits) {
  for (std::size_t i = 0; i + 1 < kDigits; ++i) {
    digits[i + 1] += digits[i] >> kDigitBits;
    digits[i] &= static_cast<std::int64_t>(kDigit);
  }
}

double ExactSum::Value() const {
  Digits digits = limbs_;
  if (digits[kDigits] != 0) return std::numeric_limits<double>::quiet_NaN();
  Carry(digits);
  const bool negative = digits[kDigits - 1] < 0;
  if (negative) {
    for (std::int64_t& digit : digits) digit = -digit;
    Carry(digits);
  }
  double value = 0;
  for (std::size_t i = 0; i < kDigits; ++i) {
    value += std::ldexp(static_cast<double>(digits[i]), kLeastExponent + kDigitBits * static_cast<int>(i));
  }
  return negative ? -value : value;
}

}  // namespace plait::base
