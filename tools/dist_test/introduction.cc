#include "tools/dist_test/introduction.h"

#include <ATen/Context.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

}  // namespace

Place Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log) {
  Place place = {.job = comm::DetectJob(), .device = {}, .utf8 = comm::LocaleIsUtf8()};
  comm::CompleteJob(mesh.world(), comm::BuildFingerprint(Revision()), &place.job);
  const bool cuda = at::globalContext().hasCUDA() && place.job.devices_per_node > 0;
  place.device = cuda ? comm::CudaDevice(place.job, "nccl") : comm::CpuDevice(place.job);
  log.Info("logging level is 'INFO' on 'RANK == 0', 'CRITICAL' on all others 'RANK != 0'; to log from all ranks "
           "(many lines): export LOG_FROM_ALL_RANKS=1");
  for (const std::string& line : place.job.contradictions) log.Warning(line);
  log.Info("\n" + comm::DistInfoBlock(place.job, place.device, place.utf8));
  log.Info(comm::DeviceLine(place.job, place.device, "DDP"));
  for (const comm::MeshAxis& axis : mesh.axes()) {
    log.Info(absl::StrCat("> initializing ", axis.name == "dp" ? "ddp" : axis.name, " with size ", axis.size));
  }
  log.Info(comm::RankLine(place.job.host, mesh));
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
