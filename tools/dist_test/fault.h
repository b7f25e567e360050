// Fault injection: what does a job report when a rank fails?
#ifndef PLAIT_TOOLS_DIST_TEST_FAULT_H_
#define PLAIT_TOOLS_DIST_TEST_FAULT_H_

#include "comm/communicator.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

inline constexpr int kFaultExitCode = 3;
inline constexpr double kSlowSeconds = 0.1;

// On rank --fault-rank, at step --fault-iter, before its forward pass: hang sleeps forever, exit calls
// exit(3), kill sends SIGKILL to itself, mismatch calls a broadcast on `gradients` while the other ranks
// reduce gradients; slow sleeps for kSlowSeconds in this and every later step. Does nothing on other ranks
// and in other steps. `world` counts ranks; local, except mismatch.
void InjectFault(const Config& config, int iter, const comm::Communicator& world,
                 const comm::Communicator& gradients);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_FAULT_H_
