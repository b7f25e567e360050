// What ranks tell each other outside the solver: texts, and small decisions.
#ifndef PLAIT_TOOLS_GRU_TRAINING_AGREEMENT_H_
#define PLAIT_TOOLS_GRU_TRAINING_AGREEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace plait::gru_training {

// All are collective.

// Rank 0's text on every rank.
std::string BroadcastText(const comm::Communicator& communicator, const std::string& text);
// The texts of all ranks in order on rank 0; empty elsewhere.
std::vector<std::string> GatherTexts(const comm::Communicator& communicator, const std::string& text);
std::int64_t BroadcastNumber(const comm::Communicator& communicator, std::int64_t number);
// Whether any rank says so.
bool AnyRank(const comm::Communicator& communicator, bool mine);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_AGREEMENT_H_
