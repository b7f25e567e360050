// Linear problems with independent fine and coarse steps, to check convergence theory.
#ifndef PLAIT_MGRIT_TESTING_LINEAR_PROBLEMS_H_
#define PLAIT_MGRIT_TESTING_LINEAR_PROBLEMS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/seed.h"
#include "mgrit/problem.h"

namespace plait::mgrit::testing {

// One mode of a linear problem: u <- lambda u on level 0, u <- mu u on level 1.
class ScalarMode : public Problem<double> {
 public:
  ScalarMode(double lambda, double mu) : factors_{lambda, mu} {}

  void Initialize(std::int64_t point, double, double& u) override { u = point == 0 ? 0.0 : guess_[point]; }
  void Step(const StepInterval& interval, const double& u, double& out) override {
    out = factors_[interval.level] * u;
  }
  // The solution is 0, so the guess is the error.
  void set_guess(std::vector<double> by_point) { guess_ = std::move(by_point); }

 private:
  double factors_[2];
  std::vector<double> guess_;
};

// u_{i+1} = A_i u_i + b_i with random A_i of norm at most `growth` and random b_i. A coarse step uses A and b of its
// first fine step, and so is a poor approximation of the fine steps that it replaces.
class RandomLinearSystem : public Problem<std::vector<double>> {
 public:
  using Vector = std::vector<double>;
  RandomLinearSystem(std::size_t dimension, double growth, std::uint64_t seed)
      : dimension_(dimension), growth_(growth), seed_(seed) {}

  Vector Make(int) override { return Vector(dimension_); }
  void Initialize(std::int64_t point, double, Vector& u) override {
    base::RandomStream random(base::DeriveSeed(seed_, "guess", static_cast<std::uint64_t>(point)));
    for (double& value : u) value = 2 * random.Uniform() - 1;
  }
  void Step(const StepInterval& interval, const Vector& u, Vector& out) override {
    base::RandomStream random = Stream(interval);
    for (double& row : out) {
      double sum = 0;
      for (double value : u) sum += Entry(random) * value;
      row = sum;
    }
    for (double& value : out) value += 2 * random.Uniform() - 1;
  }
  void StepAdjoint(const StepInterval& interval, const Vector&, const Vector& lambda, Vector& out) override {
    base::RandomStream random = Stream(interval);
    out.assign(dimension_, 0.0);
    for (double row : lambda) {
      for (double& value : out) value += Entry(random) * row;
    }
  }

 private:
  base::RandomStream Stream(const StepInterval& interval) const {
    return base::RandomStream(
        base::DeriveSeed(seed_, "step", static_cast<std::uint64_t>(interval.fine_start)));
  }
  // The absolute row and column sums are at most `growth`.
  double Entry(base::RandomStream& random) const {
    return growth_ / static_cast<double>(dimension_) * (2 * random.Uniform() - 1);
  }

  std::size_t dimension_;
  double growth_;
  std::uint64_t seed_;
};

}  // namespace plait::mgrit::testing

#endif  // PLAIT_MGRIT_TESTING_LINEAR_PROBLEMS_H_
