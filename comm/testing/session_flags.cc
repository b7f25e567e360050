#include "comm/testing/session_flags.h"

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"

namespace plait::comm::testing {
namespace {

// "--name=N" among the arguments sets a number.
void TakeNumber(const std::string& flag, int argc, char** argv, std::int64_t* number) {
  for (int i = 1; i < argc; ++i) {
    if (absl::StartsWith(argv[i], flag)) *number = std::atoll(argv[i] + flag.size());
  }
}

}  // namespace

SessionOptions SessionOptionsFromFlags(int argc, char** argv) {
  SessionOptions options = {.setup_timeout_seconds = 60, .step_timeout_seconds = 60};
  TakeNumber("--max_elements_per_message=", argc, argv, &options.max_elements_per_message);
  TakeNumber("--shared_bytes_per_rank=", argc, argv, &options.shared_bytes_per_rank);
  TakeNumber("--ring_bytes=", argc, argv, &options.ring_bytes);
  std::int64_t timeout = 0;
  TakeNumber("--timeout_seconds=", argc, argv, &timeout);
  if (timeout > 0) {
    for (double* seconds :
         {&options.start_timeout_seconds, &options.setup_timeout_seconds, &options.step_timeout_seconds}) {
      *seconds = static_cast<double>(timeout);
    }
  }
  std::int64_t read_peers = 1;
  TakeNumber("--read_peers=", argc, argv, &read_peers);
  options.read_peers = read_peers != 0;
  return options;
}

}  // namespace plait::comm::testing
