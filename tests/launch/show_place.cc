// show_place [--mpi]: one line per rank with what its environment says about the job; with --mpi also what
// MPI says, after the ranks have talked to each other. For slurm_test.py.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "comm/communicator.h"
#include "comm/launch/job.h"
#include "comm/launch/job_on_ranks.h"
#include "comm/session_main.h"

namespace {

using plait::comm::Job;

std::string Hosts(const Job& job) {
  std::string text;
  for (const auto& [host, slots] : job.hosts)
    absl::StrAppend(&text, text.empty() ? "" : ",", host, ":", slots);
  return text;
}

void Show(const char* when, const Job& job) {
  const std::string line =
      absl::StrCat(when, " rank=", job.rank, " size=", job.size, " local_rank=", job.local_rank,
                   " local_size=", job.local_size, " node_id=", job.node_id, " hosts=", Hosts(job),
                   " scheduler=", NameOf(job.scheduler), " job=", job.job_id,
                   " contradictions=", job.contradictions.size(), " command=", job.launch_command, "\n");
  std::fputs(line.c_str(), stdout);
  for (const std::string& each : job.contradictions) std::printf("contradiction %s\n", each.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Job job = plait::comm::DetectJob();
  Show("before", job);
  if (argc < 2 || std::string(argv[1]) != "--mpi") return 0;
  return plait::comm::RunMain(argc, argv, {}, [&](plait::comm::Session& session) -> absl::Status {
    plait::comm::CompleteJob(session.world(), "test", &job);
    Show("after", job);
    return absl::OkStatus();
  });
}
