#include "tools/training_program/introduction.h"

#include "absl/strings/str_cat.h"
#include "comm/launch/gathered_text.h"
#include "comm/launch/job_on_ranks.h"
#include "tools/revision/revision.h"

namespace plait::training_program {
namespace {

// A line of each rank, up to so many: the first and the last ones stand for the others.
constexpr int kMostRankLines = 64;

void SayRanks(const Place& place, const comm::DeviceMesh& mesh, const base::Log& log) {
  const std::vector<std::string> lines = comm::GatherText(mesh.world(), comm::RankLine(place.job.host, mesh));
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

Place Introduce(const comm::DeviceMesh& mesh, const IntroductionOptions& options, const base::Log& log) {
  Place place = {.job = comm::DetectJob(), .device = {}, .utf8 = comm::LocaleIsUtf8()};
  comm::CompleteJob(mesh.world(), comm::BuildFingerprint(Revision()), &place.job);
  place.device = options.gpu >= 0 ? comm::CudaDevice(place.job, "nccl") : comm::CpuDevice(place.job);
  if (options.gpu >= 0) place.device.id = absl::StrCat("cuda:", options.gpu);
  if (options.says_log_levels) {
    log.Info(
        "logging level is 'INFO' on 'RANK == 0', 'CRITICAL' on all others 'RANK != 0'; to log from all ranks "
        "(many lines): export LOG_FROM_ALL_RANKS=1");
  }
  for (const std::string& line : place.job.contradictions) log.Warning(line);
  log.Info("\n" + comm::DistInfoBlock(place.job, place.device, place.utf8));
  log.Info(comm::DeviceLine(place.job, place.device, options.strategy));
  for (const comm::MeshAxis& axis : mesh.axes()) {
    log.Info(
        absl::StrCat("> initializing ", axis.name == "dp" ? "ddp" : axis.name, " with size ", axis.size));
  }
  SayRanks(place, mesh, log);
  return place;
}

data::RunFacts FactsOf(const ProgramFacts& facts, const Place& place) {
  return {.program = facts.program,
          .revision = Revision(),
          .seed = absl::StrCat(facts.seed),
          .ranks = place.job.size,
          .settings = facts.settings,
          .scheduler = comm::NameOf(place.job.scheduler),
          .machine = place.job.machine,
          .launch_command = place.job.launch_command};
}

}  // namespace plait::training_program
