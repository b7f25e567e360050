// The conventional GRU, all steps in sequence on one rank: the reference for the layer-parallel one.
//
//   plait::gru::SerialGru gru({.cell = {.input = 9, .hidden = 100, .layers = 2}}, at::kFloat);
//   auto [output, state] = gru.Forward(x);          // x: (batch, steps, 9); output: (batch, 100)
//   loss(output).backward();                        // gradients of gru.parameters()
//
// Recorded by autograd as one function, whose backward runs the adjoint steps of models/gru/cell.h; gradients also
// flow to x and the initial state. The classic kind with dt = 1 computes what torch::nn::GRU(batch_first) does.
// Once differentiable: backward with create_graph throws c10::Error. A handle: copies share parameters. The memory of
// a forward pass (states and gates of all steps) is kept for the next one. Local; starts no threads. Wrong shapes and
// dtypes throw c10::Error.
#ifndef PLAIT_MODELS_GRU_SERIAL_H_
#define PLAIT_MODELS_GRU_SERIAL_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "models/gru/cell.h"

namespace torch::nn {
class Module;
}

namespace plait::gru {

class SerialSweeps;  // the cell, and the memory of passes over all steps

struct SerialGruOptions {
  GruConfig cell;
  // The steps divide [0, final_time] evenly: dt = final_time / steps. Unset: dt = 1.
  std::optional<double> final_time;
};

// Which states of the top layer Forward returns.
enum class GruOutput { kLastStep, kAllSteps };

struct GruResult {
  at::Tensor output;  // kLastStep: (batch, hidden); kAllSteps: (batch, steps, hidden)
  at::Tensor state;   // (layers, batch, hidden), after the last step
};

class SerialGru {
 public:
  // With new parameters (models/gru/parameters.h).
  SerialGru(const SerialGruOptions& options, const at::TensorOptions& tensor_options);
  // With existing parameters, which are shared, such as those of a layer-parallel GRU.
  SerialGru(const SerialGruOptions& options, std::shared_ptr<torch::nn::Module> parameters);

  // initial_state: (layers, batch, hidden); undefined: zero.
  GruResult Forward(const at::Tensor& x, const at::Tensor& initial_state = {},
                    GruOutput output = GruOutput::kLastStep);

  const std::shared_ptr<torch::nn::Module>& module() const { return module_; }
  std::vector<at::Tensor> parameters() const;
  const SerialGruOptions& options() const { return options_; }

 private:
  SerialGruOptions options_;
  std::shared_ptr<torch::nn::Module> module_;
  std::shared_ptr<SerialSweeps> sweeps_;
};

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_SERIAL_H_
