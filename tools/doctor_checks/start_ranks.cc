#include "tools/doctor_checks/start_ranks.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "comm/launch/launch_command.h"
#include "comm/launch/launcher.h"
#include "comm/launch/relaunch.h"
#include "comm/launch/starter.h"
#include "comm/launch/supervision/rank_agent.h"
#include "comm/launch/supervision/supervisor.h"

namespace plait::doctor {
namespace {

// A new, empty file, removed at the end.
class ReportFile {
 public:
  ReportFile() {
    std::error_code error;
    path_ = std::filesystem::temp_directory_path(error).string() + "/plait-doctor-XXXXXX";
    const int descriptor = mkstemp(path_.data());
    if (descriptor >= 0) close(descriptor);
    made_ = descriptor >= 0;
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  ~ReportFile() {
    if (made_) unlink(path_.c_str());
  }
  bool made() const { return made_; }
  const std::string& path() const { return path_; }
  std::string Text() const {
    std::ifstream file(path_);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }

 private:
  std::string path_;
  bool made_ = false;
};

}  // namespace

RunCommand RunSupervised(int ranks) {
  return [ranks](const std::vector<std::string>& command,
                 const std::vector<std::pair<std::string, std::string>>& environment,
                 double timeout_seconds) {
    return comm::Supervise(
        {.command = command, .environment = environment, .ranks = ranks, .timeout_seconds = timeout_seconds});
  };
}

absl::StatusOr<std::vector<Finding>> ReportOfRanks(const std::vector<std::string>& command,
                                                   double timeout_seconds, const RunCommand& run) {
  const ReportFile report;
  if (!report.made()) return absl::UnavailableError(absl::StrCat("cannot make ", report.path()));
  PLAIT_ASSIGN_OR_RETURN(const int code, run(command, {{kReportVariable, report.path()}}, timeout_seconds));
  const std::string text = report.Text();
  if (!text.empty()) {
    PLAIT_ASSIGN_OR_RETURN(std::vector<Finding> findings, FindingsFromJson(text));
    if (code != 0) {
      findings.push_back({Severity::kError, "end",
                          absl::StrCat("the ranks gave this report and then failed, with exit code ", code),
                          "see the launcher's own message above"});
    }
    return findings;
  }
  const std::string line = base::ShellCommand(command);
  if (code == comm::kTimedOut) {
    return absl::UnavailableError(absl::StrCat(line, " gave no report within ", timeout_seconds, " s"));
  }
  return absl::UnavailableError(
      absl::StrCat(line, " ended with exit code ", code, " before it gave a report"));
}

absl::StatusOr<std::vector<std::string>> CommandOnRanks(int ranks, char** argv) {
  PLAIT_RETURN_IF_ERROR(comm::CheckRanksOfHost(ranks));
  PLAIT_RETURN_IF_ERROR(comm::CheckAddressSpaceOfRank());
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return absl::NotFoundError("/proc/self/exe: " + error.message());
  PLAIT_ASSIGN_OR_RETURN(const comm::FoundStarter found,
                         comm::FindStarter(/*in_slurm_job=*/false, comm::ProcessCommands()));
  std::vector<std::string> arguments = {comm::kRankAgentArgument, program};
  for (char** argument = argv + 1; *argument != nullptr; ++argument) arguments.push_back(*argument);
  const comm::RelaunchOptions options = {.ranks = ranks,
                                         .host_in_job = comm::HostInJob(comm::ProcessEnvironment()),
                                         .as_root = geteuid() == 0,
                                         .set_one_thread = std::getenv("OMP_NUM_THREADS") == nullptr};
  return comm::LaunchCommand(comm::RelaunchPlan(found, options, program, arguments));
}

Finding NotStarted(int ranks, const absl::Status& why) {
  return {Severity::kError, "start", absl::StrCat(ranks, " ranks do not start: ", why.message()),
          absl::IsNotFound(why) || absl::IsResourceExhausted(why) || absl::IsInvalidArgument(why)
              ? "the checks below are of this host alone"
              : "see the launcher's own message above; the checks below are of this host alone"};
}

}  // namespace plait::doctor
