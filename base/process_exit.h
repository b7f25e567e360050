// The end of a process: output that was cut is an error, so is an exception, and libraries' static objects are not
// destroyed.
#ifndef PLAIT_BASE_PROCESS_EXIT_H_
#define PLAIT_BASE_PROCESS_EXIT_H_

#include <string>

#include "absl/functional/function_ref.h"

namespace plait::base {

// Sanitizers report what they found behind the last destructor.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kExitRunsStaticDestructors = true;
#else
inline constexpr bool kExitRunsStaticDestructors = false;
#endif

// Changes what exit() and the return from main do; call it first in main (ParseFlagsOrExit does, for every tool):
// - Where the exit code would be 0 and standard output could not be written (disk full), a line on standard error says so
//   and the code is 1. A closed pipe is no error: its reader has seen enough.
// - Destructors of objects that were static before the call do not run: LibTorch's take 80 ms of processor time, a
//   quarter of what its programs need to start and end. What is registered by atexit() later runs, and stdio's streams
//   are flushed.
// Calls after the first have no effect.
void PrepareExit(const std::string& program);

// Returns what `body`, all of a tool's main function, returns. 1 if it throws a std::exception, with one line about it on
// standard error. For programs without ranks; those with them have comm::RunMain.
int RunTool(const std::string& program, absl::FunctionRef<int()> body);

}  // namespace plait::base

#endif  // PLAIT_BASE_PROCESS_EXIT_H_
