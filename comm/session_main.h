// The main of every program that runs on several ranks: one place catches what climbs up.
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

// The exit code of main. OK on all ranks: 0. An error that ranks agree on (the worst code, the message of the
// lowest failing rank) is printed once and all ranks return 1. An exception, TransportError or any other,
// ends the whole job with a line that names rank and host. An error that some ranks alone return is found by
// the watchdog: the others wait for this rank in vain.
int RunMain(int argc, char** argv, const SessionOptions& options,
            const std::function<absl::Status(Session&)>& program);

}  // namespace plait::comm

#endif  // PLAIT_COMM_SESSION_MAIN_H_
