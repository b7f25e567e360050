// Collectives of MPI carry no fingerprint, so ranks exchange fingerprints by messages of their own, in which the first
// values of a ring travel along. Private to comm/mpi.
//
// Rank r compares its call with that of rank r - 1, round the ring: if not all ranks make the same call, at least
// two neighbours differ. Who has to know that all ranks agree goes on in rounds of doubled distances (a
// dissemination barrier: Hensgen, Finkel & Manber, "Two algorithms for barrier synchronization", IJPP 17, 1988).
#ifndef PLAIT_COMM_MPI_CALL_CHECK_H_
#define PLAIT_COMM_MPI_CALL_CHECK_H_

#include <memory>
#include <utility>

#include "comm/backend.h"
#include "comm/call_fingerprint.h"
#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/mpi_work.h"

namespace plait::comm {

enum class CheckedRanks { kNeighbor, kAll };

// Adds the exchange to `work`, as its first requests and stages; what is added behind begins when it has passed.
// It throws TransportError if the neighbour has made another call.
void AddCallCheck(const MpiGroup& group, const CallFingerprint& call, CheckedRanks checked, MpiWork& work);

// The same between neighbours, with at most kPieceBytes of values for the next rank and from the one before, which are
// stored when the check has passed. `sent` may be overwritten at once.
void AddCallCheckWithValues(const MpiGroup& group, const CallFingerprint& call, ConstBuffer sent,
                            Buffer received, MpiWork& work);

// An operation beside its check: complete when both are.
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
