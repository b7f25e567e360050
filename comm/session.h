// The process's membership in a job: one per program, alive from the first lines of main to the last.
//
//   int main(int argc, char** argv) {
//     return comm::RunMain(argc, argv, [](comm::Session& session) -> absl::Status { ... });  //
//     session_main.h
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
// Makes the transport between devices: comm/nccl/nccl_backend.h has one.
using DeviceBackendFactory = std::function<std::unique_ptr<Backend>(Backend& host, int device_index)>;

struct SessionOptions {
  // How long Session::Start may take in one of its steps (MPI, roll call, watchdogs).
  double start_timeout_seconds = 120;
  // How long a rank may wait in one call before the job ends with a line that names who did not come: until
  // EnterSteps() is called, and from then on. Longer than the longest work that one rank does alone.
  double setup_timeout_seconds = 1800;
  double step_timeout_seconds = 600;
  // SIGTERM, SIGUSR1 (of Slurm's --signal=USR1@120) and the first SIGINT then make StopSignal() that signal and nothing
  // else; by default they end the process. A second SIGINT ends the job at once.
  bool stop_on_signals = false;
  // The next four select functions of MPI: where ranks bring different numbers, all take the least.
  // Larger buffers travel in several messages. The default keeps MPI's 32-bit counts; tests set it small.
  std::int64_t max_elements_per_message = std::int64_t{1} << 30;
  // Memory that the ranks of a node share, per communicator and rank; its pages are taken when they are
  // first used. Most collectives go through it; half of it is what an all-reduce copies at its start.
  // 0: through messages, as between nodes.
  std::int64_t shared_bytes_per_rank = std::int64_t{4} << 20;
  // Through messages, all-reduces, reduce-scatters and all-gathers go round a ring from this size on
  // (comm/mpi/ring_collectives.h).
  std::int64_t ring_bytes = std::int64_t{1} << 16;
  // Whether ranks of a node read values of medium length from each other's memory where the kernel lets them
  // (process_vm_readv), instead of copying them into and out of what they share.
  bool read_peers = true;
  // For tensors in CUDA memory: `comm::NcclBackendFactory()`. Empty: their collectives go through host
  // memory.
  DeviceBackendFactory device_backend = {};
};

class Session {
 public:
  // Collective over the job. Starts MPI if a launcher started this process (comm/launch/launcher.h);
  // otherwise the world is a group of one and MPI is not touched. FAILED_PRECONDITION if MPI cannot be
  // started, UNAVAILABLE if a rank does not come or cannot reach rank 0 over TCP (comm/watchdog/watchdog.h).
  // Ends the process with a line that names this rank where MPI itself hangs.
  static absl::StatusOr<Session> Start(int* argc, char*** argv, const SessionOptions& options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  // Does not communicate: a session that ends without Finish is a failed rank to the others.
  ~Session();

  const Communicator& world() const;

  // Set-up is over: the step timeout holds. Local.
  void EnterSteps();
  // The first signal that asked this rank to stop (see stop_on_signals); 0: none. Local: ranks agree on it before they
  // act on it.
  int StopSignal() const;

  // Ends the whole job at once, with the line "rank 3 (host, pid 4711): error" and a non-zero exit code on
  // all ranks. Local: for errors that this rank alone has.
  [[noreturn]] void Fail(const std::string& error);

  // Collective. Waits for all ranks and ends MPI; no communicator may be used afterwards.
  void Finish();

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_SESSION_H_
