// Small models of every kind with fixed samples, to compare strategies with one rank.
//
//   ParityModel model = MakeParityModel(ModelKind::kGpt, at::kDouble);
//   model.set_runner(...);                          // runs blocks through an engine; default: directly
//   at::Tensor sum = model.loss({0, 3, 4}, step);   // over these of the step's kParitySamples samples
#ifndef PLAIT_TESTS_PARITY_PARITY_MODEL_H_
#define PLAIT_TESTS_PARITY_PARITY_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/block_model.h"

namespace plait::parity {

// No number of ranks divides it: shares of the batch are not equal.
inline constexpr std::int64_t kParitySamples = 19;

enum class ModelKind { kMlp, kTiledMlp, kCnn, kGpt, kVit };
inline constexpr ModelKind kModelKinds[] = {ModelKind::kMlp, ModelKind::kTiledMlp, ModelKind::kCnn,
                                            ModelKind::kGpt, ModelKind::kVit};
std::string NameOf(ModelKind kind);

using EngineRunner = std::function<models::BlockState(std::size_t block, const models::BlockForward& forward,
                                                      const models::BlockState& input)>;

struct ParityModel {
  std::vector<models::ParameterUnit> units;
  std::function<void(EngineRunner)> set_runner;
  std::function<at::Tensor(const std::vector<std::int64_t>& samples, int step)> loss;

  std::vector<at::Tensor> parameters() const;
};

// The same values and samples in every process, representable in float32 whatever `type` is.
ParityModel MakeParityModel(ModelKind kind, at::ScalarType type);

}  // namespace plait::parity

#endif  // PLAIT_TESTS_PARITY_PARITY_MODEL_H_
