// Flags by which tests choose a transport: "--shared_bytes_per_rank=0", "--ring_bytes=1", ...
#ifndef PLAIT_COMM_TESTING_SESSION_FLAGS_H_
#define PLAIT_COMM_TESTING_SESSION_FLAGS_H_

#include "comm/session.h"

namespace plait::comm::testing {

// Session options from --NAME=N arguments: short messages split long buffers; a low threshold sends everything round
// the ring; little shared memory makes many rows. Ignores other arguments.
SessionOptions SessionOptionsFromFlags(int argc, char** argv);

}  // namespace plait::comm::testing

#endif  // PLAIT_COMM_TESTING_SESSION_FLAGS_H_
