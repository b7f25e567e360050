// Diagnoses problems of runs and suggests fixes: tools/doctor_checks/README.md.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "base/flags.h"
#include "base/path.h"
#include "comm/launch/job_on_ranks.h"
#include "comm/launch/supervision/rank_agent.h"
#include "comm/session_main.h"
#include "tools/doctor_checks/checks.h"
#include "tools/doctor_checks/parallel_file.h"
#include "tools/doctor_checks/probe.h"
#include "tools/doctor_checks/start_ranks.h"
#include "tools/revision/revision.h"

ABSL_FLAG(
    int, nproc, 0,
    "number of ranks to start on this host (0: 2 ranks; 1: only this process); under mpirun or srun: the "
    "expected number");
ABSL_FLAG(std::string, folder, ".",
          "directory that runs will write to; all ranks write a small HDF5 file there");
ABSL_FLAG(bool, json, false, "print the findings as JSON");
ABSL_FLAG(double, timeout, 120, "seconds for ranks to start and report");

namespace plait::doctor {
namespace {

constexpr int kUsageError = 2;
constexpr int kDefaultRanks = 2;

base::ToolUsage Usage() {
  return {.name = "doctor",
          .summary =
              "Diagnoses problems of runs on these ranks and suggests fixes. Each line is OK, WARNING or "
              "ERROR with what was "
              "found and what to do. The exit code is 1 if there is an ERROR.",
          .examples = {"doctor --nproc=4 --folder=/scratch/runs", "srun -n 16 doctor --nproc=16",
                       "mpirun -n 8 doctor --json"},
          .groups = {{"Run", {"nproc", "folder", "timeout"}}, {"Output", {"json"}}}};
}

std::string Folder() { return base::FromUser(absl::GetFlag(FLAGS_folder)); }

void Print(const std::vector<Finding>& findings) {
  if (absl::GetFlag(FLAGS_json)) {
    std::printf("%s\n", ToJson(findings).c_str());
    return;
  }
  for (const Finding& finding : findings) std::printf("%s\n", Line(finding).c_str());
}

// Collective.
std::vector<Finding> Examine(const comm::Session& session, int asked) {
  const comm::Communicator& world = session.world();
  comm::Job job = comm::DetectJob();
  comm::CompleteJob(world, comm::BuildFingerprint(Revision()), &job);
  const std::string folder = Folder();
  const std::vector<RankFacts> ranks = ProbeRanks(ProcessProbeSources(folder), job, world);
  std::vector<Finding> findings = CheckAll(ranks, asked, job.contradictions, folder);
  findings.push_back(CheckParallelFile(world, ranks, folder));
  return findings;
}

// Runs the checks on the ranks that a launcher started, or on this process alone. `before`: earlier findings.
int ExamineHere(int argc, char** argv, int asked, std::vector<Finding> before) {
  const char* report = std::getenv(kReportVariable);
  int exit_code = 0;
  const comm::SessionOptions options = {.setup_timeout_seconds = absl::GetFlag(FLAGS_timeout)};
  const int code = comm::RunMain(argc, argv, options, [&](comm::Session& session) {
    std::vector<Finding> findings = std::move(before);
    for (Finding& finding : Examine(session, asked)) findings.push_back(std::move(finding));
    exit_code = ExitCode(findings);
    if (session.world().rank() != 0) return absl::OkStatus();
    if (report == nullptr) {
      Print(findings);
    } else {
      std::ofstream(report) << ToJson(findings);
    }
    return absl::OkStatus();
  });
  // With a report, the exit code for its findings is that of the doctor that reads it.
  return report != nullptr || code != 0 ? code : exit_code;
}

int ExamineOnRanks(int argc, char** argv, int ranks) {
  const auto command = CommandOnRanks(ranks, argv);
  const auto findings = command.ok()
                            ? ReportOfRanks(*command, absl::GetFlag(FLAGS_timeout), RunSupervised(ranks))
                            : absl::StatusOr<std::vector<Finding>>(command.status());
  if (!findings.ok()) return ExamineHere(argc, argv, /*asked=*/0, {NotStarted(ranks, findings.status())});
  Print(*findings);
  return ExitCode(*findings);
}

int Main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == comm::kRankAgentArgument) {
    return comm::RunRankAgent(std::vector<std::string>(argv + 2, argv + argc));
  }
  const comm::Launcher launcher = comm::DetectLauncher();
  base::ParseFlagsOrExit(argc, argv, Usage(), launcher.starts_mpi() ? launcher.rank : 0);
  const int nproc = absl::GetFlag(FLAGS_nproc);
  if (nproc < 0) {
    std::fprintf(stderr, "doctor: --nproc=%d: expected a number of ranks\n", nproc);
    return kUsageError;
  }
  const double timeout = absl::GetFlag(FLAGS_timeout);
  if (!(timeout > 0 && std::isfinite(timeout))) {
    std::fprintf(stderr, "doctor: --timeout=%g: expected a positive number of seconds\n", timeout);
    return kUsageError;
  }
  if (launcher.starts_mpi() || nproc == 1) return ExamineHere(argc, argv, nproc, {});
  return ExamineOnRanks(argc, argv, nproc == 0 ? kDefaultRanks : nproc);
}

}  // namespace
}  // namespace plait::doctor

int main(int argc, char** argv) { return plait::doctor::Main(argc, argv); }
