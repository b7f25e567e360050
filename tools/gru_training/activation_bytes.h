// Bytes of the network's activations, for the memory plan. Local.
#ifndef PLAIT_TOOLS_GRU_TRAINING_ACTIVATION_BYTES_H_
#define PLAIT_TOOLS_GRU_TRAINING_ACTIVATION_BYTES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/gru/cell.h"
#include "tools/gru_training/settings.h"

namespace plait::gru_training {

struct ActivationBytes {
  std::int64_t training = 0;    // per sample, of a forward and backward pass
  std::int64_t evaluation = 0;  // per sample, of a forward pass without backward
};

// The maximum over the `lp_ranks` ranks of lp. One rank is planned as serial propagation, unless --force-lp.
// Both are kept for the next pass with the same number of samples.
ActivationBytes ActivationBytesPerSample(const GruSettings& settings, const gru::GruConfig& cell,
                                         const at::TensorOptions& options, int lp_ranks);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_ACTIVATION_BYTES_H_
