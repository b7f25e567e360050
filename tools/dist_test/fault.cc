#include "tools/dist_test/fault.h"

#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

namespace plait::dist_test {
namespace {

void SleepSeconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// As large as a gradient, so that only the operation differs.
void CallOtherCollective(const comm::Communicator& gradients) {
  std::vector<float> values(1 << 16);
  gradients.Broadcast(comm::BufferOf(absl::MakeSpan(values)), 0);
}

}  // namespace

void InjectFault(const Config& config, int iter, const comm::Communicator& world,
                 const comm::Communicator& gradients) {
  if (world.rank() != config.fault_rank || iter < config.fault_iter) return;
  if (config.fault == FaultKind::kSlow) return SleepSeconds(kSlowSeconds);
  if (iter != config.fault_iter) return;
  switch (config.fault) {
    case FaultKind::kHang:
      while (true) SleepSeconds(1);
    case FaultKind::kExit:
      std::exit(kFaultExitCode);
    case FaultKind::kKill:
      std::raise(SIGKILL);
      return;
    case FaultKind::kMismatch:
      return CallOtherCollective(gradients);
    case FaultKind::kSlow:
    case FaultKind::kNone:
      return;
  }
}

}  // namespace plait::dist_test
