// The process's membership in a job: one per program, alive from the first lines of main to the last.
//
//   int main(int argc, char** argv) {
//     return comm::RunMain(argc, argv, [](comm::Session& session) -> absl::Status { ... });  // session_main.h
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
#include <memory>

#include "absl/status/statusor.h"
#include "comm/communicator.h"

namespace plait::comm {

struct SessionOptions {
  // Larger buffers travel in several messages. The default keeps MPI's 32-bit counts; tests set it small.
  std::int64_t max_elements_per_message = std::int64_t{1} << 30;
};

class Session {
 public:
  // Collective over the job. Starts MPI if a launcher started this process (comm/launch/launcher.h); otherwise the
  // world is a group of one and MPI is not touched. FAILED_PRECONDITION if MPI cannot be started.
  static absl::StatusOr<Session> Start(int* argc, char*** argv, const SessionOptions& options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  // Does not communicate: a session that ends without Finish is a failed rank to the others.
  ~Session();

  const Communicator& world() const;

  // Collective. Waits for all ranks and ends MPI; no communicator may be used afterwards.
  void Finish();

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_SESSION_H_
