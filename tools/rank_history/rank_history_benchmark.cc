// Times RankHistory::Append per step, and a traced span.
//
//   bazel run //tools/rank_history:rank_history_benchmark                                  one rank
//   mpirun -n 2 bazel-bin/tools/rank_history/rank_history_benchmark                        two ranks
//
// Ten metrics per step: statistics of all but the step number, and dt of each rank. The ranks do nothing else, so the
// times include waiting for each other.
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "comm/session_main.h"
#include "tools/rank_history/rank_history.h"
#include "tools/rank_history/rank_trace.h"

namespace plait::rank_history {
namespace {

constexpr int kSteps = 100'000;

// Processor time of this thread, which other programs on the core do not affect.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<RankColumn> Metrics() {
  std::vector<RankColumn> metrics = {{{"iter"}}, {{"dt", "s"}, RankStatistics::kEachRank}};
  for (const char* name :
       {"loss", "dtf", "dtb", "dto", "sps", "comm_bytes_dp", "comm_in_flight_dp", "comm_exposed_dp"}) {
    metrics.push_back({{name}, RankStatistics::kStatistics});
  }
  return metrics;
}

absl::Status MeasureHistory(const comm::Communicator& world, const std::string& folder, int gather_every) {
  const std::string path = absl::StrCat(folder, "/run", gather_every, ".h5");
  PLAIT_ASSIGN_OR_RETURN(
      auto history,
      RankHistory::Create(world, {.path = path, .metrics = Metrics(), .gather_every = gather_every}));
  const double cpu_begin = CpuSeconds();
  for (int step = 0; step < kSteps; ++step) {
    const double loss = 1.0 / (1 + step);
    PLAIT_RETURN_IF_ERROR(history->Append({{"iter", 1.0 * step},
                                           {"loss", loss},
                                           {"dt", loss / 3},
                                           {"dtf", loss / 7},
                                           {"dtb", loss / 9},
                                           {"dto", 1e-3},
                                           {"sps", 1e4},
                                           {"comm_bytes_dp", 3350528},
                                           {"comm_in_flight_dp", 1.25e-3},
                                           {"comm_exposed_dp", 0.25e-3}}));
  }
  const double microseconds = 1e6 * history->seconds() / kSteps;
  const double cpu_microseconds = 1e6 * (CpuSeconds() - cpu_begin) / kSteps;
  PLAIT_RETURN_IF_ERROR(history->Close());
  if (world.rank() == 0)
    std::printf("history  ranks=%d gather_every=%d  %.2f us per step, %.2f of CPU on rank 0\n", world.size(),
                gather_every, microseconds, cpu_microseconds);
  return absl::OkStatus();
}

absl::Status MeasureTrace(const comm::Communicator& world, const std::string& folder) {
  auto trace = RankTrace::Create(world, {.path = folder + "/trace.json"});
  const double cpu_begin = CpuSeconds();
  for (int step = 0; step < kSteps; ++step) data::TraceSpan span(trace->trace(), "step", {.step = step});
  const double cpu_microseconds = 1e6 * (CpuSeconds() - cpu_begin) / kSteps;
  if (world.rank() == 0)
    std::printf("trace    ranks=%d  %.3f us of CPU per span\n", world.size(), cpu_microseconds);
  return trace->Write({});
}

absl::Status Run(comm::Session& session) {
  namespace fs = std::filesystem;
  const std::string folder = fs::temp_directory_path() / "plait_rank_history_benchmark";
  if (session.world().rank() == 0) fs::create_directories(folder);
  session.world().Barrier();
  for (const int gather_every : {1, 10, 100})
    PLAIT_RETURN_IF_ERROR(MeasureHistory(session.world(), folder, gather_every));
  PLAIT_RETURN_IF_ERROR(MeasureTrace(session.world(), folder));
  if (session.world().rank() == 0) fs::remove_all(folder);
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::rank_history

int main(int argc, char** argv) { return plait::comm::RunMain(argc, argv, {}, plait::rank_history::Run); }
