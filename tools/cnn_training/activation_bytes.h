// Bytes of the network's activations, for the memory plan. Local.
#ifndef PLAIT_TOOLS_CNN_TRAINING_ACTIVATION_BYTES_H_
#define PLAIT_TOOLS_CNN_TRAINING_ACTIVATION_BYTES_H_

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "models/cnn/cnn.h"

namespace plait::cnn_training {

// Peak bytes per sample of a forward and a backward pass over a large batch.
std::int64_t ActivationBytes(const cnn::CnnOptions& options, at::ScalarType type);
// The same for a forward pass without autograd.
std::int64_t EvaluationBytes(const cnn::CnnOptions& options, at::ScalarType type);

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_ACTIVATION_BYTES_H_
