// A sum of doubles without rounding: bitwise identical for any order of the terms and any distribution over ranks.
//
//   ExactSum sum;
//   for (double term : terms) sum.Add(term);
//   world.AllReduce(comm::BufferOf(sum.Limbs()));   // integers: any order gives the same
//   double total = sum.Value();
//
// A fixed-point accumulator wide enough for every double: Kulisch, "Computer Arithmetic and Validity", 2008, chapter 8.
// Digits of 32 bits are kept in 64-bit integers, so that carries can be deferred. Demmel and Nguyen, "Fast reproducible
// floating-point summation", ARITH 2013, use fewer bits, but round, with an a priori error bound. Local.
#ifndef PLAIT_BASE_EXACT_SUM_H_
#define PLAIT_BASE_EXACT_SUM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace plait::base {

class ExactSum {
 public:
  // 68 digits in base 2^32, the first with weight 2^-1074, then the number of terms that were infinite or NaN.
  static constexpr std::size_t kLimbs = 69;

  void Add(double term);

  // The accumulator's integers, carries propagated, as a view into this object. After an element-wise sum over fewer
  // than 2^30 accumulators (an all-reduce), Value() is the sum of all their terms.
  absl::Span<std::int64_t> Limbs();

  // Within one unit in the last place, and a function of the exact sum alone. NaN if any term was not finite.
  double Value() const;

 private:
  static constexpr std::size_t kDigits = kLimbs - 1;
  using Digits = std::array<std::int64_t, kLimbs>;
  static void Carry(Digits& digits);

  Digits limbs_ = {};
  std::int64_t adds_ = 0;  // since the last carry
};

}  // namespace plait::base

#endif  // PLAIT_BASE_EXACT_SUM_H_
