// Faults on purpose, to see what a job says about them.
#ifndef PLAIT_TOOLS_DIST_TEST_FAULT_H_
#define PLAIT_TOOLS_DIST_TEST_FAULT_H_

#include "comm/communicator.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

inline constexpr int kFaultExitCode = 3;
inline constexpr double kSlowSeconds = 0.1;

// On rank --fault-rank, at step --fault-iter, before its forward pass: hang sleeps for good, exit calls
// exit(3), kill sends itself SIGKILL, mismatch enters a broadcast where the others reduce gradients; slow
// sleeps 0.1 seconds in this and every later step. Elsewhere and otherwise nothing. Local, except mismatch.
void StrikeFault(const Config& config, int iter, const comm::Communicator& dp);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_FAULT_H_
