// Fault injection: fault_program FAULT RANK, run under mpirun by fault_test.sh and start_test.sh. Rank 0 prints the
// time of the fault.
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "comm/flight_recorder.h"
#include "comm/session_main.h"

namespace {

using plait::comm::BufferOf;
using plait::comm::Communicator;

// Like a launcher that kills the job because one rank has died: the others get SIGTERM at the same moment.
void KillUnderSigterm(const std::vector<std::int32_t>& pids) {
  for (const std::int32_t pid : pids) {
    if (pid != getpid()) kill(pid, SIGTERM);
  }
  kill(getpid(), SIGKILL);
}

void Misbehave(const Communicator& tp, const std::string& fault, const std::vector<std::int32_t>& pids) {
  std::vector<float> values(4096, 1);
  if (fault == "exit_0") exit(0);
  if (fault == "exit_3") exit(3);
  if (fault == "quick_exit_0") _exit(0);
  if (fault == "quick_exit_3") _exit(3);
  if (fault == "kill") kill(getpid(), SIGKILL);
  if (fault == "kill_under_sigterm") KillUnderSigterm(pids);
  if (fault == "terminate") kill(getpid(), SIGTERM);
  if (fault == "hang_up") kill(getpid(), SIGHUP);
  if (fault == "stop") kill(getpid(), SIGSTOP);
  if (fault == "crash") raise(SIGSEGV);
  if (fault == "sleep" || fault == "terminate" || fault == "hang_up") sleep(600);
  if (fault == "throw") throw std::runtime_error("the disk is on fire");
  if (fault == "allocate") values.resize(std::size_t{1} << 60);
  if (fault == "other_operation") tp.Broadcast(BufferOf(absl::MakeSpan(values)), 0);
  if (fault == "other_size") tp.AllReduce(BufferOf(absl::MakeSpan(values).first(1024)));
}

// Rank 0 waits for a message that never comes; the others go on to the all-reduce.
void MissSend(const Communicator& tp, int guilty) {
  std::vector<float> values(8);
  if (tp.rank() == 0) tp.Receive(BufferOf(absl::MakeSpan(values)), guilty, 5);
  if (tp.rank() == guilty) sleep(600);
}

// As under ulimit -u, which does not bind root: threads get larger stacks than there is address space.
void ForbidThreads() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{1} << 50);
  pthread_setattr_default_np(&attributes);
}

// Before the session: the rank is known from mpirun alone.
void MissStart(const std::string& fault, int guilty) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr || std::stoi(rank) != guilty) return;
  if (fault == "no_thread") ForbidThreads();
  if (fault == "no_roll_call") MPI_Init(nullptr, nullptr);
  if (fault == "no_mpi" || fault == "no_roll_call") sleep(600);
}

constexpr char kGoodbye = 6;  // FrameKind of comm/watchdog/link.h, behind a length of four bytes
int guilty_at_the_end = -1;

}  // namespace

// Replaces the C library's send(): stops a rank after the program's last collective, when its watchdog is about to say
// goodbye.
ssize_t send(int socket, const void* bytes, std::size_t count, int flags) {
  const char kind = count == 5 ? static_cast<const char*>(bytes)[4] : '\0';
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (kind == kGoodbye && rank != nullptr && std::stoi(rank) == guilty_at_the_end) {
    kill(getpid(), SIGSTOP);
    usleep(100'000);  // other threads of the process may be stopped first
  }
  return sendto(socket, bytes, count, flags, nullptr, 0);
}

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "";
  const int guilty = argc > 2 ? std::stoi(argv[2]) : 0;
  MissStart(fault, guilty);
  if (fault == "stop_at_goodbye") guilty_at_the_end = guilty;
  const plait::comm::SessionOptions options = {
      .start_timeout_seconds = 2, .setup_timeout_seconds = 60, .step_timeout_seconds = 2};
  return plait::comm::RunMain(argc, argv, options, [&](plait::comm::Session& session) -> absl::Status {
    const Communicator tp = session.world().Split(0, session.world().rank(), "tp");
    std::int32_t pid[1] = {getpid()};
    std::vector<std::int32_t> pids(tp.size());
    session.world().AllGather(BufferOf(absl::MakeSpan(pid)), BufferOf(absl::MakeSpan(pids)));
    session.EnterSteps();
    std::vector<float> values(4096, 1);
    for (int step = 0; step < 8; ++step) tp.AllReduce(BufferOf(absl::MakeSpan(values)));
    const plait::comm::PhaseScope phase(tp, "optimizer");
    usleep(400'000);  // longer than the watchdogs take to publish a position
    if (tp.rank() == 0) {
      std::printf("fault at %.3f\n", absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
      std::fflush(stdout);
    }
    if (fault == "no_send") MissSend(tp, guilty);
    if (fault == "own_error" && tp.rank() == guilty) return absl::InvalidArgumentError("no such file");
    if (fault == "same_error") return tp.Agree(absl::DataLossError(tp.rank() < guilty ? "" : "truncated"));
    if (tp.rank() == guilty) Misbehave(tp, fault, pids);
    tp.AllReduce(BufferOf(absl::MakeSpan(values)));
    tp.AllReduce(BufferOf(absl::MakeSpan(values)));
    return absl::OkStatus();
  });
}
