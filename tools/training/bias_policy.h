// How many iterations the layer-parallel solver takes, from what they cost in exactness: the gradients of a few
// iterations are biased, and training goes on as with exact ones while the bias stays a fixed part of the gradient.
// (Guenther, Ruthotto, Schroder, Cyr, Gauger: Layer-parallel training of deep residual neural networks, SIAM J. Math.
// Data Sci. 2, 2020, section 4; transformers: arXiv:2601.09026.)
//
//   BiasPolicy policy({.limit = 0.1, .most_iterations = 9}, {.forward = 2, .backward = 1});
//   policy.Take({.bias = 0.3, .seconds = 0.1, .exact_seconds = 0.2});   // every so many steps
//   policy.choice();                                                    // {.forward = 2, .backward = 2}
//
// Local; ranks that take the same measurements choose alike.
#ifndef PLAIT_TOOLS_TRAINING_BIAS_POLICY_H_
#define PLAIT_TOOLS_TRAINING_BIAS_POLICY_H_

#include <cstdint>

namespace plait::training {

struct SolverChoice {
  int forward = 1, backward = 1;  // iterations
  bool serial = false;            // in their place: from step to step, without bias

  friend bool operator==(const SolverChoice&, const SolverChoice&) = default;
};

struct BiasPolicyOptions {
  double limit = 0.1;  // of |biased gradient - exact one| / |exact one|
  // Below this part of the limit an iteration is saved.
  double slack = 0.25;
  // With so many the solver is exact.
  int most_iterations = 1;
  // Whether steps may become serial, where exact passes were faster.
  bool may_be_serial = false;
};

class BiasPolicy {
 public:
  BiasPolicy(const BiasPolicyOptions& options, const SolverChoice& begin)
      : options_(options), iterations_(begin) {}

  // Of the same micro-batches, with the iterations of iterations() and exactly.
  struct Measurement {
    double bias = 0;
    double seconds = 0, exact_seconds = 0;
  };
  void Take(const Measurement& measured);

  // Of the next steps.
  SolverChoice choice() const;
  // The same, but never serial: what is measured.
  const SolverChoice& iterations() const { return iterations_; }
  void Restore(const SolverChoice& choice);

 private:
  void Raise();
  void Lower();

  BiasPolicyOptions options_;
  SolverChoice iterations_;
  bool serial_ = false;
  // Fewer iterations than these had too large a bias lately: they are tried again some measurements later.
  int refused_sum_ = 0, refused_for_ = 0;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_BIAS_POLICY_H_
