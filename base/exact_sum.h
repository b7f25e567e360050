// A sum of doubles without rounding, so that its bits do not depend on the order of the terms, nor on how they are
// spread over ranks.
//
//   ExactSum sum;
//   for (double term : terms) sum.Add(term);
//   world.AllReduce(comm::BufferOf(sum.Limbs()));   // integers: any order gives the same
//   double total = sum.Value();
//
// A fixed-point number that is long enough for every double: Kulisch, "Computer Arithmetic and Validity", 2008,
// chapter 8. Its digits are 32 bits each in an integer of 64, so that carries wait. Demmel and Nguyen, "Fast
// reproducible floating-point summation", ARITH 2013, need fewer bits and know their error only beforehand. Local.
#ifndef PLAIT_BASE_EXACT_SUM_H_
#define PLAIT_BASE_EXACT_SUM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace plait::base {

class ExactSum {
 public:
  // Digits, of 2^32 each from 2^-1074 on, and the number of terms that were infinite or no number.
  static constexpr std::size_t kLimbs = 69;

  void Add(double term);

  // Of fewer than 2^30 sums, added up element by element, Value() is that of all their terms.
  absl::Span<std::int64_t> Limbs();

  // Within one unit in the last place, a function of the exact sum alone. NaN where a term was not finite.
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
