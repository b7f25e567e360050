// GPT as loops over doubles, as a reference for tests.
#ifndef PLAIT_MODELS_GPT_TESTING_LOOPS_H_
#define PLAIT_MODELS_GPT_TESTING_LOOPS_H_

#include <cstdint>
#include <vector>

#include "models/gpt/gpt.h"

namespace plait::gpt {

// Logits of one sequence, [position][token], without dropout; every block has step size `dt`.
std::vector<std::vector<double>> LogitsByLoops(const Gpt& gpt, const std::vector<std::int64_t>& tokens,
                                               double dt = 1);

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_TESTING_LOOPS_H_
