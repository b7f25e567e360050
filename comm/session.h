// A process's membership in a job: one per program, from the beginning of main to its end.
//
//   int main(int argc, char** argv) {  // comm/session_main.h
//     return comm::RunMain(argc, argv, {}, [](comm::Session& session) -> absl::Status { ... });
//   }
//
// or by hand:
//
//   absl::StatusOr<comm::Session> session = comm::Session::Start(&argc, &argv);
//   comm::Communicator world = session->world();
//   ...
//   session->Finish();  // collective
#ifndef PLAIT_COMM_SESSION_H_
#define PLAIT_COMM_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "comm/communicator.h"

namespace plait::comm {

class Backend;
// As in comm/backend.h; NcclBackendFactory() in comm/nccl/nccl_backend.h returns one.
using DeviceBackendFactory = std::function<std::unique_ptr<Backend>(Backend& host, int device_index)>;

struct SessionOptions {
  // Limit for each step of Session::Start (MPI_Init, roll call, connection of the watchdogs).
  double start_timeout_seconds = 120;
  // How long a rank may wait in one call before the job ends with a line that names the ranks it waits for: until
  // EnterSteps() is called, and from then on. Must exceed the longest work that one rank does alone.
  double setup_timeout_seconds = 1800;
  double step_timeout_seconds = 600;
  // If true, SIGTERM, SIGHUP, SIGUSR1 (Slurm's --signal=USR1@120) and the first SIGINT only set StopSignal(); by default
  // they end the process. A second SIGINT ends the job at once.
  bool stop_on_signals = false;
  // The next four decide which MPI calls are made: if ranks pass different values, all use the least.
  // Longer buffers are split into several messages, because MPI counts in 32 bits; tests set it small.
  std::int64_t max_elements_per_message = std::int64_t{1} << 30;
  // Bytes of shared memory per communicator and rank, for collectives within a node; pages are allocated when first
  // used. An all-reduce fills up to half of it before the other ranks have entered. 0: messages, as between nodes.
  std::int64_t shared_bytes_per_rank = std::int64_t{4} << 20;
  // Where shared memory is not used, as between nodes, all-reduces, reduce-scatters and all-gathers of at least this
  // many bytes (of all parts together) use a ring of messages (comm/mpi/ring_collectives.h).
  std::int64_t ring_bytes = std::int64_t{1} << 16;
  // Whether all-to-alls, and all-gathers of two ranks, of 128 KiB to 8 MiB within a node read the other ranks' memory
  // directly where the kernel permits it (process_vm_readv), instead of copying through shared memory.
  bool read_peers = true;
  // For tensors in CUDA memory: `comm::NcclBackendFactory()`. Empty: they are copied through host memory.
  DeviceBackendFactory device_backend = {};
};

class Session {
 public:
  // Collective over the job. Starts MPI if a launcher started this process (comm/launch/launcher.h); otherwise the
  // world is a group of one and MPI is not initialised. FAILED_PRECONDITION if MPI cannot be started (srun without PMI,
  // several processes of torchrun, no thread support), RESOURCE_EXHAUSTED if a limit on address space leaves too little
  // for it, UNAVAILABLE if a rank is missing or cannot reach rank 0 over TCP (comm/watchdog/watchdog.h). If MPI itself
  // hangs, a thread cannot be started or a message fails, the process exits with a line that names this rank, exit code
  // 70, which ends the job. Call before starting threads.
  static absl::StatusOr<Session> Start(int* argc, char*** argv, const SessionOptions& options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  // Does not communicate: to the other ranks, a session destroyed without Finish() is a failed rank.
  ~Session();

  const Communicator& world() const;

  // Set-up is over: step_timeout_seconds applies from now on. Local.
  void EnterSteps();
  // The first stop signal that this rank received (see stop_on_signals); 0: none. Local: the program must agree on it
  // across ranks before it acts on it.
  int StopSignal() const;

  // Ends the whole job at once, with the line "rank 3 (host, pid 4711): error" and exit code 70 on all ranks. Local:
  // for errors of this rank alone.
  [[noreturn]] void Fail(const std::string& error);

  // Collective. Waits for all ranks and finalizes MPI; no communicator may be used afterwards.
  void Finish();

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_SESSION_H_
