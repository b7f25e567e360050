// Whether ranks start at all: doctor starts itself on them, and they leave their report in a file.
#ifndef PLAIT_TOOLS_DOCTOR_CHECKS_START_RANKS_H_
#define PLAIT_TOOLS_DOCTOR_CHECKS_START_RANKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/doctor_checks/finding.h"

namespace plait::doctor {

// The environment variable that names the file in which rank 0 leaves the findings, as ToJson writes them.
inline constexpr char kReportVariable[] = "PLAIT_DOCTOR_REPORT";

// Runs the command with an environment for at most so long; its exit code, 124 when the time was over.
using RunCommand = std::function<absl::StatusOr<int>(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment, double timeout_seconds)>;

// Under comm::Supervise, the ranks under its agents: call once in a process.
RunCommand RunSupervised(int ranks);

// What the ranks found. UNAVAILABLE if they did not come to a report: no mpirun, one that fails, or none
// within `timeout_seconds`; the message is one line with the command.
absl::StatusOr<std::vector<Finding>> ReportOfRanks(const std::vector<std::string>& command,
                                                   double timeout_seconds, const RunCommand& run);

// This program with these arguments (argv[0] excluded) on `ranks` ranks of this host. The ranks begin as
// agents: main has to begin with comm::RunRankAgent (comm/launch/supervision/rank_agent.h).
absl::StatusOr<std::vector<std::string>> CommandOnRanks(int ranks, char** argv);

// For a report of this host alone, where ranks did not start.
Finding NotStarted(int ranks, const absl::Status& why);

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_START_RANKS_H_
