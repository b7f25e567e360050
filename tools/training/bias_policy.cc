#include "tools/training/bias_policy.h"

#include <algorithm>
#include <cmath>

namespace plait::training {
namespace {

constexpr int kRefusedMeasurements = 5;
// Times of equal passes vary by this fraction.
constexpr double kNoise = 0.05;

}  // namespace

// Raises the direction with fewer iterations, the adjoint first: it starts from zero, the forward solve from the input.
void BiasPolicy::Raise() {
  refused_sum_ = iterations_.forward + iterations_.backward;
  refused_for_ = kRefusedMeasurements;
  int& fewer = iterations_.backward <= iterations_.forward ? iterations_.backward : iterations_.forward;
  fewer = std::min(fewer + 1, options_.most_iterations);
}

void BiasPolicy::Lower() {
  if (refused_for_ > 0 && iterations_.forward + iterations_.backward - 1 <= refused_sum_) return;
  int& more = iterations_.forward >= iterations_.backward ? iterations_.forward : iterations_.backward;
  more = std::max(more - 1, 1);
}

void BiasPolicy::Take(const Measurement& measured) {
  if (options_.may_be_serial) {
    const double ratio = measured.seconds / measured.exact_seconds;
    serial_ = ratio > (serial_ ? 1 - kNoise : 1 + kNoise);
  }
  refused_for_ = std::max(refused_for_ - 1, 0);
  // Not a number: the solve has diverged.
  if (!(measured.bias <= options_.limit)) return Raise();
  if (measured.bias < options_.slack * options_.limit) Lower();
}

SolverChoice BiasPolicy::choice() const {
  SolverChoice choice = iterations_;
  choice.serial = serial_;
  return choice;
}

void BiasPolicy::Restore(const BiasPolicyState& state) {
  iterations_ = state.choice;
  iterations_.forward = std::min(iterations_.forward, options_.most_iterations);
  iterations_.backward = std::min(iterations_.backward, options_.most_iterations);
  iterations_.serial = false;
  serial_ = options_.may_be_serial && state.choice.serial;  // a resumed run may have other options
  refused_sum_ = state.refused_sum;
  refused_for_ = state.refused_for;
}

}  // namespace plait::training
