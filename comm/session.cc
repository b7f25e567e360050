#include "comm/session.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <source_location>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/host_name.h"
#include "base/terminal.h"
#include "comm/group.h"
#include "comm/interrupt.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/agent_message.h"
#include "comm/mpi/cores.h"
#include "comm/mpi/mpi_backend.h"
#include "comm/mpi/roll_call.h"
#include "comm/self_backend.h"
#include "comm/step_watch.h"
#include "comm/watchdog/watchdog.h"

namespace plait::comm {

struct Session::State {
  Communicator world;
  SessionOptions options;
  bool uses_mpi;
  std::unique_ptr<Watchdog> watchdog = nullptr;           // null in a group of one without stop_on_signals
  std::unique_ptr<InterruptHandler> interrupt = nullptr;  // if there is no watchdog
};

namespace {

absl::Status StartMpi(int* argc, char*** argv, int ranks_of_node) {
  // Read by MPI_Init: idle ranks yield instead of polling.
  const bool oversubscribed = ranks_of_node > std::min<long>(sysconf(_SC_NPROCESSORS_ONLN), CoreQuota());
  if (oversubscribed) setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);
  int provided = 0;
  if (MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
    return absl::FailedPreconditionError(
        "MPI_Init_thread failed; was the program started by this MPI's mpirun?");
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError("this MPI has no thread support (MPI_THREAD_SERIALIZED is needed)");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Backend>> StartBackend(int* argc, char*** argv, const SessionOptions& options,
                                                      const Launcher& launcher, StepWatch& watch) {
  if (absl::Status alone = CheckTorchrun(launcher); !alone.ok()) return alone;
  if (!launcher.starts_mpi()) return MakeSelfBackend();
  if (absl::Status found = CheckPmi(launcher, ProcessEnvironment()); !found.ok()) return found;
  if (absl::Status enough = CheckAddressSpaceOfRank(); !enough.ok()) return enough;
  watch.Enter(kStartOfMpi);
  if (absl::Status started = StartMpi(argc, argv, launcher.local_size); !started.ok()) return started;
  watch.Enter("the roll call of rank 0");
  if (absl::Status all = RollCall(options.start_timeout_seconds); !all.ok()) return all;
  watch.Enter("the set-up of shared memory");
  return MakeMpiWorldBackend({.max_elements_per_message = options.max_elements_per_message,
                              .shared_bytes_per_rank = options.shared_bytes_per_rank,
                              .ring_bytes = options.ring_bytes,
                              .read_peers = options.read_peers});
}

// Ends this process and, once MPI has started, all others.
[[noreturn]] void EndJob(const std::string& line) {
  base::WriteError(line);
  int uses_mpi = 0;
  MPI_Initialized(&uses_mpi);
  if (uses_mpi != 0) MPI_Abort(MPI_COMM_WORLD, kJobFailedExitCode);
  _exit(kJobFailedExitCode);
}

std::string ThisRank() {
  return absl::StrCat("rank ", DetectLauncher().rank, " (", base::HostName(), ", pid ", getpid(), ")");
}

}  // namespace

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

absl::StatusOr<Session> Session::Start(int* argc, char*** argv, const SessionOptions& options) try {
  const Launcher launcher = DetectLauncher();
  const bool watched = launcher.starts_mpi() || options.stop_on_signals;
  if (watched) Watchdog::HoldSignals(options.stop_on_signals);
  // Later than the steps' own timeouts, whose messages are more specific.
  StepWatch watch(launcher.rank, options.start_timeout_seconds + 1);
  auto backend = StartBackend(argc, argv, options, launcher, watch);
  if (!backend.ok()) return backend.status();
  auto journal = std::make_shared<Journal>();
  journal->device_backend = options.device_backend;
  auto state = std::make_unique<State>(
      State{Communicator(MakeWorldGroup(*std::move(backend), "world", std::move(journal))), options,
            launcher.starts_mpi()});
  if (!watched) state->interrupt = std::make_unique<InterruptHandler>();
  if (watched) {
    watch.Enter("the connection of the watchdogs");
    auto watchdog = Watchdog::Start(state->world, {.start_timeout_seconds = options.start_timeout_seconds,
                                                   .timeout_seconds = options.setup_timeout_seconds,
                                                   .stop_on_signals = options.stop_on_signals});
    if (!watchdog.ok()) return watchdog.status();
    state->watchdog = *std::move(watchdog);
  }
  return Session(std::move(state));
} catch (const std::system_error& error) {  // of std::thread
  EndJob(absl::StrCat(ThisRank(), ": cannot start a thread: ", error.what(),
                      "; raise the limit on processes (ulimit -u)"));
} catch (const std::exception& error) {
  EndJob(absl::StrCat(ThisRank(), ": cannot start: ", error.what()));
}

const Communicator& Session::world() const { return state_->world; }

void Session::EnterSteps() {
  if (state_->watchdog != nullptr) state_->watchdog->SetTimeout(state_->options.step_timeout_seconds);
}

int Session::StopSignal() const { return state_->watchdog == nullptr ? 0 : state_->watchdog->StopSignal(); }

void Session::Fail(const std::string& error) {
  std::fflush(stdout);
  if (state_->watchdog != nullptr) state_->watchdog->Fail(error);
  // Still here: there is no other rank, or no way to reach the server.
  EndJob("rank " + std::to_string(world().rank()) + ": " + error);
}

// The watchdogs finish together, recorded as one more barrier, so that a missing rank is reported. Before MPI_Finalize,
// because Open MPI's mpirun may hang or crash if ranks end inside it.
void Session::Finish() {
  const PhaseScope phase(state_->world, "end of the job");
  if (state_->uses_mpi) {
    state_->world.Barrier();
    state_->world.recorder().Enter(kWorldGroup, {.operation = Operation::kBarrier},
                                   std::source_location::current(), CallState::kWaiting);
  }
  if (state_->watchdog != nullptr) state_->watchdog->Finish();
  if (!state_->uses_mpi) return;
  StepWatch watch(state_->world.rank(), state_->options.step_timeout_seconds);
  watch.Enter("MPI_Finalize");
  MPI_Finalize();
}

}  // namespace plait::comm
