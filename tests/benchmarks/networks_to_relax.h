// Networks for batched_relaxation: a serial sweep, and the same steps layer-parallel, one by one or batched.
#ifndef PLAIT_TESTS_BENCHMARKS_NETWORKS_TO_RELAX_H_
#define PLAIT_TESTS_BENCHMARKS_NETWORKS_TO_RELAX_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mgrit/layer_parallel/layer_parallel.h"

namespace plait::benchmarks {

struct NetworkSize {
  std::int64_t steps = 0, batch = 0, hidden = 0;
};

// Everything on one device, in float32, without gradients; the last state is returned.
struct NetworkToRelax {
  std::function<at::Tensor()> serial;
  std::function<at::Tensor()> one_by_one, together;  // layer-parallel, by these options
  std::function<at::Tensor()> by_library;            // LibTorch's own (cuDNN on a GPU); null: it has none
};

// gru (the classic cell, input 16), dense (u + dt tanh(W u + b)), conv (8 x 8, `hidden` channels, 3 x 3), transformer
// (16 tokens, width `hidden`, 4 heads). Each step has its own weights, except in the gru.
std::vector<std::string> NetworkKinds();
// INVALID_ARGUMENT for an unknown kind, or a size that the kind does not support.
absl::StatusOr<NetworkToRelax> MakeNetwork(const std::string& kind, const NetworkSize& size,
                                           const mgrit::LayerParallelOptions& options, at::Device device);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_NETWORKS_TO_RELAX_H_
