#include "tools/dist_test/introduction.h"

#include <ATen/Context.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/launch/gathered_text.h"
#include "comm/launch/job_on_ranks.h"
#include "tools/revision/revision.h"

namespace plait::dist_test {
namespace {

std::string ConfigBlock(const Config& config, const Place& place) {
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"warmup", absl::StrCat(config.warmup)},
      {"log_freq", absl::StrCat(config.log_freq)},
      {"batch_size", absl::StrCat(config.batch_size)},
      {"input_size", absl::StrCat(config.input_size)},
      {"output_size", absl::StrCat(config.output_size)},
      {"dtype", config.dtype},
      {"device", place.device.kind},
      {"world_size", absl::StrCat(place.job.size)},
      {"train_iters", absl::StrCat(config.train_iters)}};
  return comm::BulletBlock("CONFIG", entries, place.utf8);
}

// A line of each rank, up to so many: the first and the last ones stand for the others.
constexpr int kMostRankLines = 64;

void SayRanks(const Place& place, const comm::DeviceMesh& mesh, const base::Log& log) {
  const std::vector<std::string> lines = comm::GatherText(mesh.world(), comm::RankLine(place.job.host, mesh));
  const int count = static_cast<int>(lines.size());
  for (int rank = 0; rank < count; ++rank) {
    const bool shown =
        count <= kMostRankLines || rank < kMostRankLines / 2 || rank >= count - kMostRankLines / 2;
    if (shown) log.Info(lines[rank]);
    if (!shown && rank == kMostRankLines / 2) {
      log.Info(absl::StrCat("... ", count - kMostRankLines, " further ranks ..."));
    }
  }
}

}  // namespace

Place Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log) {
  Place place = {.job = comm::DetectJob(), .device = {}, .utf8 = comm::LocaleIsUtf8()};
  comm::CompleteJob(mesh.world(), comm::BuildFingerprint(Revision()), &place.job);
  const bool cuda = at::globalContext().hasCUDA() && place.job.devices_per_node > 0;
  place.device = cuda ? comm::CudaDevice(place.job, "nccl") : comm::CpuDevice(place.job);
  log.Info(
      "logging level is 'INFO' on 'RANK == 0', 'CRITICAL' on all others 'RANK != 0'; to log from all ranks "
      "(many lines): export LOG_FROM_ALL_RANKS=1");
  for (const std::string& line : place.job.contradictions) log.Warning(line);
  log.Info("\n" + comm::DistInfoBlock(place.job, place.device, place.utf8));
  log.Info(comm::DeviceLine(place.job, place.device, "DDP"));
  for (const comm::MeshAxis& axis : mesh.axes()) {
    log.Info(
        absl::StrCat("> initializing ", axis.name == "dp" ? "ddp" : axis.name, " with size ", axis.size));
  }
  SayRanks(place, mesh, log);
  if (!config.collectives) log.Info("\n\n" + ConfigBlock(config, place));
  return place;
}

data::RunFacts FactsOf(const Config& config, const Place& place) {
  return {.program = "test_dist",
          .revision = Revision(),
          .seed = absl::StrCat(config.seed),
          .ranks = place.job.size,
          .settings = FlagSettings(),
          .scheduler = comm::NameOf(place.job.scheduler),
          .machine = place.job.machine,
          .launch_command = place.job.launch_command};
}

}  // namespace plait::dist_test
