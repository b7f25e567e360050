// What test_dist repeats: a training step of a multilayer perceptron on the engine that the trainers use.
//
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Workload> workload,
//                          Workload::Create(config, mesh, device, profile));
//   const StepTimes step = workload->Step();
//
// Every rank draws samples of its own, x uniform in [0, 1), and minimizes sum((y - x)^2) with Adam; gradients
// are means over the ranks. Model and engine are called here and nowhere else in test_dist. Collective unless
// said otherwise.
#ifndef PLAIT_TOOLS_DIST_TEST_WORKLOAD_H_
#define PLAIT_TOOLS_DIST_TEST_WORKLOAD_H_

#include <ATen/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/profile.h"
#include "comm/device_mesh.h"
#include "models/mlp/mlp.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

// In seconds of steady_clock, taken when the device is idle.
struct StepTimes {
  double loss = 0;  // of this rank's samples
  double begin_seconds = 0;
  double forward_end_seconds = 0;
  double backward_end_seconds = 0;
  double end_seconds = 0;  // parameters are updated

  double dt() const { return end_seconds - begin_seconds; }
  double dtf() const { return forward_end_seconds - begin_seconds; }
  double dtb() const { return end_seconds - forward_end_seconds; }
  double optimizer() const { return end_seconds - backward_end_seconds; }
};

class Workload {
 public:
  // `mesh`: with the axes of MeshAxes(config). Errors are those of DataParallel::Create, the same on all
  // ranks.
  static absl::StatusOr<std::unique_ptr<Workload>> Create(const Config& config, const comm::DeviceMesh& mesh,
                                                          at::Device device, base::Profile& profile);

  StepTimes Step();

  // Calls `visit` for every parameter, unsharded.
  using ParameterVisitor = std::function<void(const std::string& name, const at::Tensor& parameter)>;
  void VisitParameters(const ParameterVisitor& visit);

  // Local.
  std::string Description() const { return mlp_.Description(); }
  const parallel::DataParallel& engine() const { return *engine_; }
  std::int64_t ParameterCount() const;

 private:
  Workload(const Config& config, const comm::DeviceMesh& mesh, at::Device device, base::Profile& profile);
  absl::Status CreateEngine(const comm::DeviceMesh& mesh);
  at::Tensor Loss();
  double Now() const;

  const Config& config_;
  int ranks_;
  at::Device device_;
  base::Profile& profile_;
  mlp::Mlp mlp_;
  std::unique_ptr<parallel::DataParallel> engine_;
  std::unique_ptr<parallel::ShardedOptimizer> adam_;
  at::Generator samples_;
};

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_WORKLOAD_H_
