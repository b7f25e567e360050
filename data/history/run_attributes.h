// Attributes that describe the run that wrote a file.
//
//   data::RunFacts run = {.program = "test_dist", .revision = Revision(), .seed = "1234", .ranks = 8};
//   run.settings = "--batch-size=64 --dtype=float32";
//   History::Create("run.h5", {.attributes = data::RunAttributes(run)});
//
// gives program, command (from /proc/self/cmdline, quoted so that a shell takes it), host, revision, seed,
// ranks, started (ISO 8601, UTC), folder (working directory), and those of settings, trace, scheduler,
// machine, launch_command that are not empty.
#ifndef PLAIT_DATA_HISTORY_RUN_ATTRIBUTES_H_
#define PLAIT_DATA_HISTORY_RUN_ATTRIBUTES_H_

#include <map>
#include <string>
#include <vector>

namespace plait::data {

struct RunFacts {
  std::string program = {};
  std::string revision = {};
  std::string seed = {};
  int ranks = 1;
  std::string settings = {};  // one line of flags
  std::string data = {};      // what the run works on; says "synthetic" where it is made up
  std::string trace = {};     // path of the Chrome trace, relative to the history file
  std::string scheduler = {};
  std::string machine = {};
  std::string launch_command = {};
};

std::map<std::string, std::string> RunAttributes(const RunFacts& facts);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_RUN_ATTRIBUTES_H_
