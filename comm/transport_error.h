// Thrown when communication fails: ranks make different calls, a message does not match its receive, MPI or NCCL
// reports an error. Not recoverable within the process: RunMain (comm/session_main.h) catches it, prints rank and host
// and ends the whole job.
#ifndef PLAIT_COMM_TRANSPORT_ERROR_H_
#define PLAIT_COMM_TRANSPORT_ERROR_H_

#include <stdexcept>

namespace plait::comm {

class TransportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_TRANSPORT_ERROR_H_
