// The main function of the examples: parses flags, starts ranks, runs the program.
#ifndef PLAIT_MGRIT_EXAMPLES_EXAMPLE_MAIN_H_
#define PLAIT_MGRIT_EXAMPLES_EXAMPLE_MAIN_H_

#include <functional>

#include "absl/status/status.h"
#include "base/flags.h"
#include "comm/session.h"

namespace plait::mgrit::examples {

base::FlagGroup RankFlags();  // --nproc

// Parses the flags and runs `program`; without a launcher and with --nproc other than 1, restarts itself on --nproc
// ranks. Returns the exit code.
int RunExample(int argc, char** argv, const base::ToolUsage& usage,
               const std::function<absl::Status(comm::Session&)>& program);

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_EXAMPLE_MAIN_H_
