// Collectives whose values go through MPI carry no fingerprint, so ranks exchange fingerprints beside them:
// the check of rank r with its neighbour r - 1, round the ring. If not all ranks make the same call, at least
// two neighbours differ. Private to comm/mpi.
//
// The exchange is one message of 32 bytes each way, in flight together with the operation: it adds no round
// trip. A ring of long messages begins when its check has passed: Open MPI writes behind a receive's buffer
// where a longer message comes.
#ifndef PLAIT_COMM_MPI_CALL_CHECK_H_
#define PLAIT_COMM_MPI_CALL_CHECK_H_

#include <mpi.h>

#include <memory>
#include <utility>

#include "comm/backend.h"
#include "comm/call_fingerprint.h"
#include "comm/mpi/mpi_work.h"

namespace plait::comm {

// The exchange by messages on `comm`, which has `size` ranks. Its Test and Wait throw TransportError if the
// neighbour has made another call.
std::unique_ptr<PendingWork> StartCallCheck(MPI_Comm comm, int rank, int size, const CallFingerprint& call,
                                            std::shared_ptr<Progress> progress);

// The same ahead of an operation in `work`, as its first requests and stage.
void AddCallCheck(MPI_Comm comm, int rank, int size, const CallFingerprint& call, MpiWork& work);

// An operation that is complete once it has been checked.
class CheckedWork : public PendingWork {
 public:
  CheckedWork(std::unique_ptr<PendingWork> check, std::unique_ptr<PendingWork> operation)
      : check_(std::move(check)), operation_(std::move(operation)) {}

  bool Test() override { return check_->Test() && operation_->Test(); }
  void Wait() override {
    check_->Wait();
    operation_->Wait();
  }

 private:
  std::unique_ptr<PendingWork> check_, operation_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_CALL_CHECK_H_
