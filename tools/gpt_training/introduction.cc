#include "tools/gpt_training/introduction.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "comm/launch/gathered_text.h"
#include "comm/launch/job_on_ranks.h"
#include "tools/revision/revision.h"

namespace plait::gpt_training {
namespace {

std::string ConfigBlock(const Config& c, const Place& place) {
  const int ranks = place.job.size;
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"preset", c.preset},
      {"n_layer", absl::StrCat(c.n_layer)},
      {"n_head", absl::StrCat(c.n_head)},
      {"n_embd", absl::StrCat(c.n_embd)},
      {"block_size", absl::StrCat(c.block_size)},
      {"dropout", absl::StrCat(c.dropout)},
      {"bias", c.bias ? "true" : "false"},
      {"batch_size", absl::StrCat(GlobalBatchSize(c, ranks), " on ", ranks, ranks == 1 ? " rank" : " ranks")},
      {"gradient_accumulation_steps", absl::StrCat(c.gradient_accumulation_steps)},
      {"strategy", c.strategy},
      {"dtype", c.dtype},
      {"activation_checkpointing", c.activation_checkpointing},
      {"device", place.device.kind},
      {"world_size", absl::StrCat(ranks)},
      {"max_iters", absl::StrCat(c.max_iters)},
      {"seed", absl::StrCat(c.seed)}};
  return comm::BulletBlock("CONFIG", entries, place.utf8);
}

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

Place Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log) {
  Place place = {.job = comm::DetectJob(), .device = {}, .utf8 = comm::LocaleIsUtf8()};
  comm::CompleteJob(mesh.world(), comm::BuildFingerprint(Revision()), &place.job);
  place.device = comm::CpuDevice(place.job);
  log.Info(
      "logging level is 'INFO' on 'RANK == 0', 'CRITICAL' on all others 'RANK != 0'; to log from all ranks "
      "(many lines): export LOG_FROM_ALL_RANKS=1");
  for (const std::string& line : place.job.contradictions) log.Warning(line);
  log.Info("\n" + comm::DistInfoBlock(place.job, place.device, place.utf8));
  log.Info(comm::DeviceLine(place.job, place.device, absl::AsciiStrToUpper(config.strategy)));
  for (const comm::MeshAxis& axis : mesh.axes()) {
    log.Info(absl::StrCat("> initializing ", axis.name, " with size ", axis.size));
  }
  SayRanks(place, mesh, log);
  log.Info("\n\n" + ConfigBlock(config, place));
  return place;
}

data::RunFacts FactsOf(const Config& config, const Place& place, const std::string& settings) {
  return {.program = "train_gpt",
          .revision = Revision(),
          .seed = absl::StrCat(config.seed),
          .ranks = place.job.size,
          .settings = settings,
          .scheduler = comm::NameOf(place.job.scheduler),
          .machine = place.job.machine,
          .launch_command = place.job.launch_command};
}

}  // namespace plait::gpt_training
