#include "tools/dist_test/fault.h"

#include <csignal>
#include <cstdlib>
#include <string>
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
  const std::string& fault = config.fault;
  if (fault == "slow") SleepSeconds(kSlowSeconds);
  if (iter != config.fault_iter) return;
  while (fault == "hang") SleepSeconds(1);
  if (fault == "exit") std::exit(kFaultExitCode);
  if (fault == "kill") std::raise(SIGKILL);
  if (fault == "mismatch") CallOtherCollective(gradients);
}

}  // namespace plait::dist_test
