// The reference of the parity tests: LibTorch's AdamW on one rank, with the settings of a ShardedOptimizer, and the
// comparison of every parameter.
#ifndef PLAIT_TESTS_PARITY_SERIAL_ADAMW_H_
#define PLAIT_TESTS_PARITY_SERIAL_ADAMW_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"

namespace torch::optim {
class AdamW;
}

namespace plait::parity {

using NamedTensors = std::map<std::string, at::Tensor>;

class SerialAdamW {
 public:
  // Which parameters decay, by name. Empty: those of two or more dimensions, but for names that end in "bias" and a
  // ViT's pos_embed and cls_token.
  using Decays = std::function<bool(const std::string& name)>;
  SerialAdamW(const NamedTensors& parameters, const parallel::ShardedOptimizerOptions& settings,
              const Decays& decays = {});
  ~SerialAdamW();
  void ZeroGradients();
  // Clips all gradients to this norm together, then steps.
  void Step(double clip_norm);

 private:
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
};

struct SerialTraining {
  std::vector<double> losses;  // by step
  NamedTensors parameters;     // at the end
};

// The steps of a run: `most`, but 5 on four ranks and more, which share few cores. Errors that grow show on fewer ranks.
int Steps(int most);

// Serial runs train on the first rank alone, and the others take what it has: ranks that share a machine's cores would
// train one after the other.
//
//   for (int step = 0; TrainsSerially() && step < kSteps; ++step) ...
//   TakeFromFirstRank(run);
bool TrainsSerially();
// Collective. `run.parameters` are those of the model on every rank, whose values are replaced.
void TakeFromFirstRank(SerialTraining& run);
void TakeFromFirstRank(std::vector<double>& numbers);
void TakeFromFirstRank(const NamedTensors& tensors);

NamedTensors NamedParameters(const std::vector<models::ParameterUnit>& units);

// The largest relative difference of losses, and of parameters relative to the largest element of each.
double Difference(const SerialTraining& a, const SerialTraining& b);

// Gives the parameters type `type`, and values at which every part of a model matters and of which a step of
// kRoundingLr changes the largest by about 1/300: float32 numbers, the same for every type.
void DrawIn(at::ScalarType type, const NamedTensors& parameters);
inline constexpr double kRoundingLr = 1e-3;
// Each element relative to itself, up or down without a pattern.
void Perturb(const std::vector<at::Tensor>& parameters, double relative);

// How far two runs of `steps` steps may be apart, relative to losses and to the largest element of each parameter.
// A step rounds a parameter twice, by at most u of its largest element each: where it decays, and where the update is
// subtracted. The update itself is at most about the learning rate, 1/300 of the largest element of a parameter, so that
// a relative error of 300 u in it counts as one rounding more: gradients are sums of products, whose 8 u sum |a b|
// through five layers is less where sums do not cancel tenfold. Such an error then grows as any other: by `growth`, what
// training makes of a small relative error of the first parameters, in float64.
double RoundingBound(int steps, at::ScalarType type, double growth);
inline constexpr double kPerturbation =
    1e-7;  // to measure growth with: its square is below what float64 sees

// Collective. Expects every parameter of this rank's engine to equal `expected`, or its local part, to `tolerance`
// times the largest element of each.
void ExpectParameters(parallel::DataParallel& dp, const NamedTensors& expected, double tolerance);

}  // namespace plait::parity

#endif  // PLAIT_TESTS_PARITY_SERIAL_ADAMW_H_
