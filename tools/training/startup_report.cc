#include "tools/training/startup_report.h"

#include "absl/strings/str_cat.h"
#include "comm/gathered_text.h"
#include "comm/launch/job_on_ranks.h"
#include "tools/revision/revision.h"

namespace plait::training {
namespace {

// A line of each rank, up to so many: the first and the last ones stand for the others.
constexpr int kMostRankLines = 64;

void LogRanks(const RunEnvironment& environment, const comm::DeviceMesh& mesh, const base::Log& log) {
  const std::vector<std::string> lines =
      comm::GatherText(mesh.world(), comm::RankLine(environment.job.host, mesh));
  const int count = static_cast<int>(lines.size());
  for (int rank = 0; rank < count; ++rank) {
    const bool edge = rank < kMostRankLines / 2 || rank >= count - kMostRankLines / 2;
    if (edge || count <= kMostRankLines) {
      log.Info(lines[rank]);
    } else if (rank == kMostRankLines / 2) {
      log.Info(absl::StrCat("... ", count - kMostRankLines, " further ranks ..."));
    }
  }
}

}  // namespace

RunEnvironment ReportStartup(const comm::DeviceMesh& mesh, const StartupOptions& options,
                             const base::Log& log) {
  RunEnvironment environment = {.job = comm::DetectJob(), .device = {}, .utf8 = comm::LocaleIsUtf8()};
  comm::CompleteJob(mesh.world(), comm::BuildFingerprint(Revision()), &environment.job);
  const bool cuda = options.gpu >= 0;
  environment.device = cuda ? comm::CudaDevice(environment.job, "nccl") : comm::CpuDevice(environment.job);
  if (cuda) environment.device.id = absl::StrCat("cuda:", options.gpu);
  if (options.log_levels) {
    log.Info(
        "logging level is 'INFO' on 'RANK == 0', 'CRITICAL' on all others 'RANK != 0'; to log from all ranks "
        "(many lines): export LOG_FROM_ALL_RANKS=1");
  }
  for (const std::string& line : environment.job.contradictions) log.Warning(line);
  log.Info("\n" + comm::DistInfoBlock(environment.job, environment.device, environment.utf8));
  log.Info(comm::DeviceLine(environment.job, environment.device, options.strategy));
  for (const comm::MeshAxis& axis : mesh.axes()) {
    log.Info(
        absl::StrCat("> initializing ", axis.name == "dp" ? "ddp" : axis.name, " with size ", axis.size));
  }
  LogRanks(environment, mesh, log);
  return environment;
}

data::RunFacts FactsOf(const ProgramFacts& facts, const RunEnvironment& environment) {
  return {.program = facts.program,
          .revision = Revision(),
          .seed = absl::StrCat(facts.seed),
          .ranks = environment.job.size,
          .settings = facts.settings,
          .scheduler = comm::NameOf(environment.job.scheduler),
          .machine = environment.job.machine,
          .launch_command = environment.job.launch_command};
}

}  // namespace plait::training
