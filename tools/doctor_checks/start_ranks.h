// Checks that ranks start at all: doctor starts itself on them, and rank 0 writes the report to a file.
#ifndef PLAIT_TOOLS_DOCTOR_CHECKS_START_RANKS_H_
#define PLAIT_TOOLS_DOCTOR_CHECKS_START_RANKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/doctor_checks/finding.h"

namespace plait::doctor {

// Environment variable with the path to which rank 0 writes the findings, as ToJson gives them.
inline constexpr char kReportVariable[] = "PLAIT_DOCTOR_REPORT";

// Runs `command` with `environment` added for at most `timeout_seconds`; returns its exit code, 124 after a timeout.
using RunCommand = std::function<absl::StatusOr<int>(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment, double timeout_seconds)>;

// Runs commands under comm::Supervise, their ranks under agents. May be called once in a process.
RunCommand RunSupervised(int ranks);

// Runs `command` and returns the findings of its ranks, with one more ERROR if it failed after their report.
// UNAVAILABLE if they wrote no report: `command` failed, or took longer than `timeout_seconds`; the message is one line
// with the command. INVALID_ARGUMENT for a truncated report; errors of `run`.
absl::StatusOr<std::vector<Finding>> ReportOfRanks(const std::vector<std::string>& command,
                                                   double timeout_seconds, const RunCommand& run);

// The command that starts this program with its arguments (argv[0] excluded) on `ranks` ranks of this host. The ranks
// are started as agents, so main has to call comm::RunRankAgent first (comm/launch/supervision/rank_agent.h). NOT_FOUND
// if there is no launcher; errors of comm::CheckRanksOfHost and comm::CheckAddressSpaceOfRank.
absl::StatusOr<std::vector<std::string>> CommandOnRanks(int ranks, char** argv);

// The ERROR finding "start", for a report of this host alone.
Finding NotStarted(int ranks, const absl::Status& why);

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_START_RANKS_H_
