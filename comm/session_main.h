// The main function of programs that run on several ranks: starts the session and handles errors and exceptions.
//
//   int main(int argc, char** argv) {
//     return comm::RunMain(argc, argv, {}, [&](comm::Session& session) -> absl::Status {
//       PLAIT_RETURN_IF_ERROR(...);          // the same on all ranks: see Communicator::Agree
//       return absl::OkStatus();
//     });
//   }
#ifndef PLAIT_COMM_SESSION_MAIN_H_
#define PLAIT_COMM_SESSION_MAIN_H_

#include <functional>

#include "absl/status/status.h"
#include "comm/session.h"

namespace plait::comm {

// Returns the exit code of main: 0 if `program` returns OK on all ranks. If it returns on all ranks, with an error on
// some, rank 0 prints the error of Communicator::Agree and all ranks return 1. An exception ends the whole job with a
// line that names rank and host. If only some ranks return, the watchdog ends the job after the timeout. If the session
// cannot be started, prints why and returns 1.
int RunMain(int argc, char** argv, const SessionOptions& options,
            const std::function<absl::Status(Session&)>& program);

}  // namespace plait::comm

#endif  // PLAIT_COMM_SESSION_MAIN_H_
