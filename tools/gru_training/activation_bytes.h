// Memory for activations of the network, for the memory plan. Local.
#ifndef PLAIT_TOOLS_GRU_TRAINING_ACTIVATION_BYTES_H_
#define PLAIT_TOOLS_GRU_TRAINING_ACTIVATION_BYTES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/gru/cell.h"
#include "tools/gru_training/settings.h"

namespace plait::gru_training {

struct ActivationBytes {
  std::int64_t training = 0;    // of each sample whose pass waits for its backward
  std::int64_t evaluation = 0;  // of each sample of a pass without
};

// Of one of `lp_ranks` ranks, the one that has most; one rank takes the steps in turn, unless --force-lp.
// Both kinds of memory are kept for the next pass with as many samples.
ActivationBytes ActivationBytesPerSample(const GruSettings& settings, const gru::GruConfig& cell,
                                         const at::TensorOptions& options, int lp_ranks);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_ACTIVATION_BYTES_H_
