#include "tools/cnn_training/introduction.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "comm/launch/dist_info.h"
#include "comm/launch/gathered_text.h"
#include "comm/launch/job_on_ranks.h"
#include "tools/revision/revision.h"

namespace plait::cnn_training {
namespace {

std::string ConfigBlock(const Config& c, int ranks, bool utf8) {
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"batch_size", absl::StrCat(c.batch_size, " a rank, ", c.batch_size * ranks, " in all")},
      {"test_batch_size", absl::StrCat(c.test_batch_size)},
      {"epochs", absl::StrCat(c.epochs)},
      {"lr", absl::StrCat(c.lr)},
      {"gamma", absl::StrCat(c.gamma)},
      {"weight_decay", absl::StrCat(c.weight_decay)},
      {"dropout", absl::StrCat(c.dropout1, ", ", c.dropout2)},
      {"strategy", c.strategy},
      {"dtype", c.dtype},
      {"activation_checkpoints", c.activation_checkpoints},
      {"world_size", absl::StrCat(ranks)},
      {"seed", absl::StrCat(c.seed)}};
  return comm::BulletBlock("CONFIG", entries, utf8);
}

}  // namespace

comm::Job Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log) {
  comm::Job job = comm::DetectJob();
  comm::CompleteJob(mesh.world(), comm::BuildFingerprint(Revision()), &job);
  const comm::DeviceChoice device = comm::CpuDevice(job);
  const bool utf8 = comm::LocaleIsUtf8();
  for (const std::string& line : job.contradictions) log.Warning(line);
  log.Info("\n" + comm::DistInfoBlock(job, device, utf8));
  log.Info(comm::DeviceLine(job, device, absl::AsciiStrToUpper(config.strategy)));
  for (const comm::MeshAxis& axis : mesh.axes()) {
    log.Info(absl::StrCat("> initializing ", axis.name, " with size ", axis.size));
  }
  for (const std::string& line : comm::GatherText(mesh.world(), comm::RankLine(job.host, mesh)))
    log.Info(line);
  log.Info("\n\n" + ConfigBlock(config, mesh.world().size(), utf8));
  return job;
}

data::RunFacts FactsOf(const Config& config, const comm::Job& job, const std::string& settings) {
  return {.program = "train_cnn",
          .revision = Revision(),
          .seed = absl::StrCat(config.seed),
          .ranks = job.size,
          .settings = settings,
          .scheduler = comm::NameOf(job.scheduler),
          .machine = job.machine,
          .launch_command = job.launch_command};
}

}  // namespace plait::cnn_training
