// Batches of a layer-parallel residual network: one of train_odenet's problems, or TorchBraid's MNIST example.
//
//   PLAIT_ASSIGN_OR_RETURN(const OdeNetCase example, OpenCase({.problem = "peaks", .layers = 64}, world));
//   OdeNetRun run(example, mgrit::MakeLayerParallelOptions(3, 4, 2, 1), world);
//   run.RunBatch().total();
#ifndef PLAIT_TESTS_BENCHMARKS_ODENET_RUN_H_
#define PLAIT_TESTS_BENCHMARKS_ODENET_RUN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/odenet/odenet.h"
#include "tests/benchmarks/timed_network.h"

namespace plait::benchmarks {

// Zeros: the problem's defaults.
struct OdeNetChoice {
  std::string problem;    // of train_odenet; "torchbraid": the example
  std::string data = {};  // folder, as train_odenet's --data
  std::int64_t layers = 0, channels = 0, batch = 0;
};

struct OdeNetCase {
  std::string problem;
  odenet::OdeNetOptions network;
  std::int64_t batch = 0;
  bool is_synthetic = false;
  std::string data;  // what the samples are
  double learning_rate = 0.01;
  std::function<models::Batch(std::int64_t number)> make_batch;
};

// Collective; errors are the same on every rank. The example has grey values from the sine of n^2, and classes 7 k modulo
// 10, as peer_odenet.py; its opening layer, which repeats the image and has no parameters there, is a fixed convolution
// that does the same.
absl::StatusOr<OdeNetCase> OpenCase(const OdeNetChoice& choice, const comm::Communicator& world);

class OdeNetRun final : public TimedNetwork {
 public:
  // Collective. Initial values from a fixed seed; batches are the case's first one. The solver fits the layers.
  OdeNetRun(const OdeNetCase& example, const mgrit::LayerParallelOptions& solver,
            const comm::Communicator& communicator);

  // Rank 0 writes the initial values as safetensors, in float32. Collective.
  absl::Status WriteInitial(const std::string& path) const;
  // A step of gradient descent with the gradients of the last batch. Local.
  void Descend(double learning_rate);
  // Steps of Adam, each on the next batch, by serial propagation. Local.
  void TrainSerially(int steps);
  // Gradients of the layers and the layers after them, by serial propagation. Collective.
  std::vector<at::Tensor> ExactGradients();
  // |gradient - exact gradient| / |exact gradient|. Collective.
  double Bias(const std::vector<at::Tensor>& exact);

  mgrit::LayerParallel& solver() override { return solver_; }
  std::string Description() const override;
  double StateBytes() const override;
  bool WantsInputGradient() const override { return !repeats_; }

 private:
  void ClearGradients() override;
  at::Tensor Open() override { return net_.Prologue(batch_, {}).hidden; }
  at::Tensor Propagate(const at::Tensor& opened) override { return solver_.Forward(opened); }
  at::Tensor Loss(const at::Tensor& propagated) override;
  at::Tensor SerialLoss() override;

  void RepeatImages();
  std::vector<at::Tensor> Gradients() const;

  OdeNetCase case_;
  bool repeats_;
  models::Batch batch_;
  odenet::OdeNet net_;
  mgrit::LayerParallel solver_;
  std::vector<at::Tensor> own_, opening_, closing_;
};

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_ODENET_RUN_H_
