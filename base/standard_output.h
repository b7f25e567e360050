// A program whose output was cut must not report success.
#ifndef PLAIT_BASE_STANDARD_OUTPUT_H_
#define PLAIT_BASE_STANDARD_OUTPUT_H_

#include <string>

namespace plait::base {

// From now on, where the process would exit with 0 and standard output could not be written (disk full), a line on
// standard error says so and the exit code is 1. A closed pipe is no error: its reader has seen enough. ParseFlagsOrExit
// calls it, for every tool. Calls after the first have no effect.
void CheckStandardOutputAtExit(const std::string& program);

}  // namespace plait::base

#endif  // PLAIT_BASE_STANDARD_OUTPUT_H_
