// What test_dist repeats: a step of a multilayer perceptron under data parallelism.
//
//   Workload workload(config, dp, profile);
//   const StepTimes step = workload.Step();
//
// Every rank draws samples of its own, x uniform in [0, 1), and minimises sum((y - x)^2) with Adam; gradients
// are the means over the ranks. Collective.
#ifndef PLAIT_TOOLS_DIST_TEST_WORKLOAD_H_
#define PLAIT_TOOLS_DIST_TEST_WORKLOAD_H_

#include <ATen/Generator.h>
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "base/profile.h"
#include "comm/communicator.h"
#include "models/mlp/mlp.h"
#include "parallel/gradient_reducer.h"
#include "parallel/optim/fused_adam.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

// On steady_clock, the device idle at each.
struct StepTimes {
  double loss = 0;  // of this rank's samples
  double begin_seconds = 0;
  double forward_end_seconds = 0;
  double backward_end_seconds = 0;  // this rank has its gradients, and most are reduced
  double end_seconds = 0;           // parameters are new

  double dt() const { return end_seconds - begin_seconds; }
  double dtf() const { return forward_end_seconds - begin_seconds; }
  double dtb() const { return end_seconds - forward_end_seconds; }
  double optimizer() const { return end_seconds - backward_end_seconds; }
};

class Workload {
 public:
  // Initial parameters are those of rank 0 of `dp`.
  Workload(const Config& config, const comm::Communicator& dp, at::Device device, base::Profile& profile);

  StepTimes Step();

  std::string Description() const { return mlp_.Description(); }
  std::vector<at::Tensor> parameters() const { return mlp_.parameters(); }
  std::int64_t ParameterCount() const;
  // Of gradients that a step reduces, by bucket.
  std::vector<std::int64_t> bucket_bytes() const { return reducer_->bucket_bytes(); }

 private:
  at::Tensor Loss();
  void Update();
  double Now() const;

  const Config& config_;
  comm::Communicator dp_;
  at::Device device_;
  base::Profile& profile_;
  mlp::Mlp mlp_;
  std::unique_ptr<parallel::GradientReducer> reducer_;  // none on one rank
  parallel::FusedAdam adam_;
  at::Generator samples_;
};

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_WORKLOAD_H_
