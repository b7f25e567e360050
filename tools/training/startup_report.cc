#include "tools/training/startup_report.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "comm/gathered_text.h"
#include "comm/launch/job_on_ranks.h"
#include "tools/revision/revision.h"

namespace plait::training {
namespace {

// Of more ranks than this, only the first and the last half are printed.
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

std::string WordsOf(const std::string& axis) {
  const std::map<std::string, std::string> words = {
      {"dp", "ddp"}, {"tp", "tensor parallel"}, {"cp", "context parallel"}, {"pp", "pipeline"}};
  const auto found = words.find(axis);
  return found == words.end() ? axis : found->second;
}

// `ranks` ranks from `first` on, as nested lists of these sizes, the last one fastest.
std::string NestedRanks(absl::Span<const int> sizes, int first, int ranks) {
  if (sizes.empty()) return absl::StrCat(first);
  const int each = ranks / sizes[0];
  std::vector<std::string> parts;
  for (int i = 0; i < sizes[0]; ++i) parts.push_back(NestedRanks(sizes.subspan(1), first + i * each, each));
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

}  // namespace

RunEnvironment ReportStartup(const comm::DeviceMesh& mesh, const StartupOptions& options,
                             const base::Log& log) {
  RunEnvironment environment = {.job = comm::DetectJob(), .device = {}, .utf8 = comm::LocaleIsUtf8()};
  comm::CompleteJob(mesh.world(), comm::BuildFingerprint(Revision()), &environment.job);
  const bool cuda = options.gpu >= 0;
  environment.device = cuda ? comm::CudaDevice(environment.job, "nccl") : comm::CpuDevice(environment.job);
  if (cuda) environment.device.id = absl::StrCat("cuda:", options.gpu);
  log.Info(
      "logging level is 'INFO' on 'RANK == 0', 'CRITICAL' on all others 'RANK != 0'; to log from all ranks "
      "(many lines): export LOG_FROM_ALL_RANKS=1");
  for (const std::string& line : environment.job.contradictions) log.Warning(line);
  log.Info("\n" + comm::DistInfoBlock(environment.job, environment.device, environment.utf8));
  log.Info(comm::DeviceLine(environment.job, environment.device, options.strategy));
  for (const comm::MeshAxis& axis : mesh.axes()) {
    log.Info(absl::StrCat("> initializing ", WordsOf(axis.name), " with size ", axis.size));
  }
  LogRanks(environment, mesh, log);
  return environment;
}

std::string DeviceMeshText(const comm::DeviceMesh& mesh) {
  std::vector<int> sizes;
  std::vector<std::string> names;
  for (const comm::MeshAxis& axis : mesh.axes()) {
    if (axis.size == 1 && mesh.world().size() > 1) continue;
    sizes.push_back(axis.size);
    names.push_back(absl::StrCat("'", axis.name, "'"));
  }
  return absl::StrCat("DeviceMesh(", NestedRanks(sizes, 0, mesh.world().size()), ", mesh_dim_names=(",
                      absl::StrJoin(names, ", "), "))");
}

data::RunFacts FactsOf(const std::string& program, std::uint64_t seed, const std::string& settings,
                       const RunEnvironment& environment, const std::string& data) {
  return {.program = program,
          .revision = Revision(),
          .seed = absl::StrCat(seed),
          .ranks = environment.job.size,
          .settings = settings,
          .data = data,
          .scheduler = comm::NameOf(environment.job.scheduler),
          .machine = environment.job.machine,
          .launch_command = environment.job.launch_command};
}

}  // namespace plait::training
