#include "comm/session.h"

#include <mpi.h>

#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "comm/group.h"
#include "comm/launch/launcher.h"
#include "comm/mpi/backoff.h"
#include "comm/mpi/mpi_backend.h"
#include "comm/self_backend.h"

namespace plait::comm {

struct Session::State {
  explicit State(Communicator world, bool uses_mpi) : world(std::move(world)), uses_mpi(uses_mpi) {}
  Communicator world;
  bool uses_mpi;
};

namespace {

absl::Status StartMpi(int* argc, char*** argv, bool oversubscribed) {
  // Read by MPI_Init: an idle rank gives its core away instead of polling on it.
  if (oversubscribed) setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);
  int provided = 0;
  if (MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
    return absl::FailedPreconditionError("MPI_Init_thread failed; was the program started by this MPI's mpirun?");
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError("this MPI has no thread support (MPI_THREAD_SERIALIZED is needed)");
  }
  return absl::OkStatus();
}

}  // namespace

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

absl::StatusOr<Session> Session::Start(int* argc, char*** argv, const SessionOptions& options) {
  const Launcher launcher = DetectLauncher();
  if (!launcher.starts_mpi()) {
    Communicator world(MakeWorldGroup(MakeSelfBackend(), "world", std::make_shared<Journal>()));
    return Session(std::make_unique<State>(std::move(world), false));
  }
  const bool oversubscribed = launcher.local_size > AvailableCores();
  if (absl::Status started = StartMpi(argc, argv, oversubscribed); !started.ok()) return started;
  const MpiOptions mpi = {.max_elements_per_message = options.max_elements_per_message,
                          .oversubscribed = oversubscribed};
  Communicator world(MakeWorldGroup(MakeMpiWorldBackend(mpi), "world", std::make_shared<Journal>()));
  return Session(std::make_unique<State>(std::move(world), true));
}

const Communicator& Session::world() const { return state_->world; }

void Session::Finish() {
  if (!state_->uses_mpi) return;
  state_->world.Barrier();
  MPI_Finalize();
}

}  // namespace plait::comm
