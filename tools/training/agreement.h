// Checks that all ranks were started with the same flags.
#ifndef PLAIT_TOOLS_TRAINING_AGREEMENT_H_
#define PLAIT_TOOLS_TRAINING_AGREEMENT_H_

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "tools/training/settings.h"

namespace plait::training {

// Collective. One all-gather of 8 bytes per rank if all values agree. Otherwise INVALID_ARGUMENT, the same on all
// ranks, which names the first flag that differs, two ranks and their values.
absl::Status AgreeOnSettings(const comm::Communicator& world, const NamedValues& mine);

// Collective. INVALID_ARGUMENT, the same on all ranks, if ranks have different facts of data and model (trainer.h).
absl::Status AgreeOnFacts(const comm::Communicator& world, const NamedValues& mine);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_AGREEMENT_H_
