// Adapts the number of iterations of the layer-parallel solver to the measured bias of the gradient. With few
// iterations gradients are biased; training converges as with exact ones while the bias stays below a fixed fraction of
// the gradient. (Guenther, Ruthotto, Schroder, Cyr, Gauger: Layer-parallel training of deep residual neural networks,
// SIAM J. Math. Data Sci. 2, 2020, section 4; transformers: arXiv:2601.09026.)
//
//   BiasPolicy policy({.limit = 0.1, .most_iterations = 9}, {.forward = 2, .backward = 1});
//   policy.Take({.bias = 0.3, .seconds = 0.1, .exact_seconds = 0.2});   // every N steps
//   policy.choice();                                                    // {.forward = 2, .backward = 2}
//
// Local and deterministic: ranks that pass in the same measurements agree.
#ifndef PLAIT_TOOLS_TRAINING_BIAS_POLICY_H_
#define PLAIT_TOOLS_TRAINING_BIAS_POLICY_H_

#include <cstdint>

namespace plait::training {

struct SolverChoice {
  int forward = 1, backward = 1;  // iterations
  bool serial = false;            // serial propagation instead: no bias

  friend bool operator==(const SolverChoice&, const SolverChoice&) = default;
};

struct BiasPolicyOptions {
  double limit = 0.1;  // of |biased gradient - exact gradient| / |exact gradient|
  // Below slack * limit the number of iterations is reduced by one.
  double slack = 0.25;
  // The number of iterations that makes the solver exact.
  int most_iterations = 1;
  // Whether steps may switch to serial propagation while exact passes are faster.
  bool may_be_serial = false;
};

// What a run saves to go on from.
struct BiasPolicyState {
  SolverChoice choice;
  // This many iterations (forward + backward) or fewer recently had too large a bias: not tried again for
  // refused_for measurements.
  int refused_sum = 0, refused_for = 0;
};

class BiasPolicy {
 public:
  BiasPolicy(const BiasPolicyOptions& options, const SolverChoice& begin)
      : options_(options), iterations_(begin) {}

  // Results for the same micro-batches, with iterations() and exactly. A NaN bias means that the solve diverged.
  struct Measurement {
    double bias = 0;
    double seconds = 0, exact_seconds = 0;
  };
  void Take(const Measurement& measured);

  // What the next steps use.
  SolverChoice choice() const;
  // The iterations to measure: those of choice(), never serial.
  const SolverChoice& iterations() const { return iterations_; }
  BiasPolicyState state() const { return {choice(), refused_sum_, refused_for_}; }
  void Restore(const BiasPolicyState& state);

 private:
  void Raise();
  void Lower();

  BiasPolicyOptions options_;
  SolverChoice iterations_;
  bool serial_ = false;
  int refused_sum_ = 0, refused_for_ = 0;  // BiasPolicyState
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_BIAS_POLICY_H_
