// Numbers that are none: found, and named by the tensor that has them.
#ifndef PLAIT_TOOLS_GRU_TRAINING_FINITE_H_
#define PLAIT_TOOLS_GRU_TRAINING_FINITE_H_

#include <string>

#include "tools/gru_training/network.h"

namespace plait::gru_training {

// The 2-norm of all gradients together; not finite if any number of them is not.
double GradientNorm(const NamedTensors& parameters);

// "parameter gru.weight_ih_l0", else "gradient of head.weight", the first in order; empty if all are finite.
std::string FirstNonFinite(const NamedTensors& parameters);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_FINITE_H_
