// Checks the requirements on a problem one by one, level by level. Private to mgrit/testing/problem_conformance.h,
// which includes it.
#ifndef PLAIT_MGRIT_TESTING_PROBLEM_CONFORMANCE_CHECKS_H_
#define PLAIT_MGRIT_TESTING_PROBLEM_CONFORMANCE_CHECKS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mgrit/problem.h"
#include "mgrit/testing/conformance_input.h"

namespace plait::mgrit::testing {

template <typename S>
class ProblemConformance {
 public:
  ProblemConformance(Problem<S>& problem, const ConformanceInput<S>& input)
      : problem_(problem), input_(input) {}

  std::vector<std::string> Run() {
    for (int level = 0; level < input_.levels; ++level) {
      level_ = level;
      CheckCopy();
      CheckCombine();
      CheckNorm();
      CheckPack();
      CheckStep();
      CheckStepMany();
      if (input_.adjoint != AdjointCheck::kNone) CheckAdjoint();
      if (problem_.CoarsensSpace() && level + 1 < input_.levels) CheckTransfer();
    }
    return std::move(violations_);
  }

 private:
  using Operations = StateOperations<S>;
  using Bytes = std::vector<std::byte>;
  static constexpr std::size_t kGuardBytes = 8;

  S Random(std::uint64_t seed) const { return input_.random_state(level_, seed); }
  static double Norm(const S& x) { return std::sqrt(Operations::NormSquared(x)); }
  // a x + b y, by Copy and Combine.
  S Combined(double a, const S& x, double b, const S& y) { return Combined(a, x, b, y, level_); }
  S Combined(double a, const S& x, double b, const S& y, int level) {
    S sum = problem_.Make(level);
    Operations::Copy(y, sum);
    Operations::Combine(a, x, b, sum);
    return sum;
  }
  // By the polarisation identity.
  double Dot(const S& x, const S& y) { return Dot(x, y, level_); }
  double Dot(const S& x, const S& y, int level) {
    return (Operations::NormSquared(Combined(1, x, 1, y, level)) -
            Operations::NormSquared(Combined(1, x, -1, y, level))) /
           4;
  }
  static Bytes Packed(const S& x) {
    const auto size = static_cast<std::size_t>(Operations::PackedBytes(x));
    Bytes bytes(size + kGuardBytes);  // a faulty Pack writes into these
    Operations::Pack(x, absl::MakeSpan(bytes).first(size));
    bytes.resize(size);
    return bytes;
  }
  S Stepped(const S& u) {
    S out = Random(99);
    problem_.Step(Interval(1), u, out);
    return out;
  }
  StepInterval Interval(std::int64_t index) const {
    std::int64_t stride = 1;
    for (int level = 0; level < level_; ++level) stride *= input_.cfactor;
    StepInterval interval{
        .level = level_, .index = index, .fine_start = index * stride, .fine_stop = (index + 1) * stride};
    interval.t_start = input_.time.At(interval.fine_start);
    interval.t_stop = input_.time.At(interval.fine_stop);
    return interval;
  }
  void Expect(bool holds, const std::string& promise) {
    if (!holds) violations_.push_back(absl::StrCat("level ", level_, ": ", promise));
  }
  void ExpectNear(double actual, double expected, double tolerance, const std::string& promise) {
    Expect(std::fabs(actual - expected) <= tolerance,
           absl::StrCat(promise, ": ", actual, " instead of ", expected, " (tolerance ", tolerance, ")"));
  }

  void CheckCopy() {
    const S x = Random(1);
    S y = Random(2);
    Operations::Copy(x, y);
    Expect(Packed(x) == Packed(y), "Copy: the copy has other bits");
    const Bytes before = Packed(x);
    Operations::Combine(1.0, Random(3), 1.0, y);
    Expect(Packed(x) == before, "Copy: changing the copy changes the original");
  }

  void CheckCombine() {
    const S x = Random(1);
    const S y = Random(2);
    Expect(Packed(Combined(0, x, 1, y)) == Packed(y), "Combine: 0 x + 1 y is not y");
    Expect(Packed(Combined(1, x, 0, y)) == Packed(x), "Combine: 1 x + 0 y is not x");
    Expect(Norm(Combined(-1, x, 1, x)) == 0, "Combine: -1 x + 1 x is not 0");
    const double squared = Operations::NormSquared(Combined(3, x, -2, y));
    const double expected = 9 * Operations::NormSquared(x) - 12 * Dot(x, y) + 4 * Operations::NormSquared(y);
    const double scale = 25 * (Operations::NormSquared(x) + Operations::NormSquared(y));
    ExpectNear(squared, expected, input_.conditioning * input_.epsilon * scale,
               "Combine: the square of |3 x - 2 y|");
  }

  void CheckNorm() {
    const S x = Random(1);
    const double squared = Operations::NormSquared(x);
    Expect(squared > 0, "NormSquared: not positive for a state that is not zero");
    ExpectNear(Operations::NormSquared(Combined(2, x, 0, x)), 4 * squared, 8 * input_.epsilon * squared,
               "NormSquared: of 2 x");
  }

  void CheckPack() {
    const S x = Random(1);
    S y = Random(2);
    const auto size = static_cast<std::size_t>(Operations::PackedBytes(x));
    const Bytes packed = Packed(x);
    Operations::Unpack(packed, y);
    Expect(Norm(Combined(-1, x, 1, y)) == 0, "Unpack: what was packed does not come back");
    Bytes guarded(size + kGuardBytes, std::byte{0x5a});
    Operations::Pack(x, absl::MakeSpan(guarded).first(size));
    for (std::size_t i = size; i < guarded.size(); ++i) {
      Expect(guarded[i] == std::byte{0x5a}, "Pack: writes more than PackedBytes");
    }
  }

  void CheckStep() {
    const S u = Random(1);
    const Bytes before = Packed(u);
    S first = Random(2);
    S second = Random(3);
    problem_.Step(Interval(1), u, first);
    Expect(Packed(u) == before, "Step: changes u");
    S between = Random(4);
    problem_.Step(Interval(0), Random(5), between);
    problem_.Step(Interval(1), u, second);
    Expect(Packed(first) == Packed(second),
           "Step: the same u gives other bits, depending on the content of out or on steps before");
  }

  void CheckStepMany() {
    const StateOf<S> u1(Random(1)), u2(Random(2));
    StateOf<S> out1(Random(3)), out2(Random(4)), expected1(Random(5)), expected2(Random(6));
    const StepTask tasks[] = {{Interval(0), &u1, &out1}, {Interval(1), &u2, &out2}};
    problem_.StepMany(tasks);
    problem_.Step(Interval(0), u1.value, expected1.value);
    problem_.Step(Interval(1), u2.value, expected2.value);
    Expect(Packed(out1.value) == Packed(expected1.value) && Packed(out2.value) == Packed(expected2.value),
           "StepMany: other bits than Step");
  }

  void CheckAdjoint() {
    const S u = Random(1);
    const S v = Random(2);
    const S w = Random(3);
    const bool affine = input_.adjoint == AdjointCheck::kAffine;
    const double h = affine ? 1.0 : std::cbrt(input_.epsilon);
    S jv = Combined(-1, Stepped(affine ? u : Combined(-h, v, 1, u)), 1, Stepped(Combined(h, v, 1, u)));
    if (!affine) jv = Combined(0, jv, 0.5 / h, jv);
    S jtw = Random(98);
    problem_.StepAdjoint(Interval(1), u, w, jtw);
    const double scale = Norm(jv) * Norm(w) + Norm(v) * Norm(jtw) + Norm(w) * (Norm(u) + Norm(v));
    // Central differences with h = eps^(1/3) have errors of eps^(2/3).
    const double precision = affine ? input_.epsilon : h * h;
    ExpectNear(Dot(v, jtw), Dot(jv, w), input_.conditioning * precision * scale,
               "StepAdjoint: <v, J^T w> against <J v, w>");
  }

  void CheckTransfer() {
    CheckLinear("Restrict", level_, level_ + 1,
                [this](const S& from, S& to) { problem_.Restrict(level_, from, to); });
    CheckLinear("Interpolate", level_ + 1, level_,
                [this](const S& from, S& to) { problem_.Interpolate(level_, from, to); });
    if (input_.adjoint != AdjointCheck::kNone) CheckTransferAdjoints();
  }

  // <R x, y> against <x, R^T y>, <P y, x> against <y, P^T x>.
  void CheckTransferAdjoints() {
    const S x = Random(1);
    const S y = input_.random_state(level_ + 1, 2);
    S rx = input_.random_state(level_ + 1, 3), ptx = input_.random_state(level_ + 1, 4);
    S py = Random(5), rty = Random(6);
    problem_.Restrict(level_, x, rx);
    problem_.InterpolateAdjoint(level_, y, rty);
    problem_.Interpolate(level_, y, py);
    problem_.RestrictAdjoint(level_, x, ptx);
    const double scale = (Norm(x) + Norm(py) + Norm(rty)) * (Norm(y) + Norm(rx) + Norm(ptx));
    const double tolerance = input_.conditioning * input_.epsilon * scale;
    ExpectNear(Dot(x, rty, level_), Dot(rx, y, level_ + 1), tolerance,
               "InterpolateAdjoint: <x, R^T y> against <R x, y>");
    ExpectNear(Dot(ptx, y, level_ + 1), Dot(x, py, level_), tolerance,
               "RestrictAdjoint: <P^T x, y> against <x, P y>");
  }

  void CheckLinear(const char* name, int from, int to, const std::function<void(const S&, S&)>& transfer) {
    const S x = input_.random_state(from, 1);
    const S y = input_.random_state(from, 2);
    S sum = problem_.Make(from);
    Operations::Copy(y, sum);
    Operations::Combine(3, x, 2, sum);
    S tx = input_.random_state(to, 3), ty = input_.random_state(to, 4), tsum = input_.random_state(to, 5);
    transfer(x, tx);
    transfer(y, ty);
    transfer(sum, tsum);
    Operations::Combine(-3, tx, 1, tsum);
    Operations::Combine(-2, ty, 1, tsum);
    const double scale = Norm(tx) + Norm(ty) + Norm(x) + Norm(y);
    ExpectNear(Norm(tsum), 0, input_.conditioning * input_.epsilon * scale,
               absl::StrCat(name, ": is not linear"));
  }

  Problem<S>& problem_;
  ConformanceInput<S> input_;
  int level_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace plait::mgrit::testing

#endif  // PLAIT_MGRIT_TESTING_PROBLEM_CONFORMANCE_CHECKS_H_
