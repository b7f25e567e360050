// The main of every example: flags, ranks, then the program.
#ifndef PLAIT_MGRIT_EXAMPLES_EXAMPLE_MAIN_H_
#define PLAIT_MGRIT_EXAMPLES_EXAMPLE_MAIN_H_

#include <functional>

#include "absl/status/status.h"
#include "base/flags.h"
#include "comm/session.h"

namespace plait::mgrit::examples {

base::FlagGroup RankFlags();  // --nproc

// The exit code of main. Parses the flags, starts the program anew on --nproc ranks if no launcher has, runs
// it.
int RunExample(int argc, char** argv, const base::ToolUsage& usage,
               const std::function<absl::Status(comm::Session&)>& program);

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_EXAMPLE_MAIN_H_
