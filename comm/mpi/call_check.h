// MPI's collectives carry no fingerprint, so ranks exchange fingerprints in separate messages, which also carry the
// first piece of a ring collective. Private to comm/mpi.
//
// Rank r compares its call with that of rank r - 1, modulo the size: if not all ranks make the same call, at least one
// rank sees a difference. Where a rank must know that all ranks agree, rounds with doubled distances follow (a
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

// Adds the exchange to `work`, as its first requests and stages; later stages start once the check has passed.
// Advancing the work throws TransportError if another rank makes a different call.
void AddCallCheck(const MpiGroup& group, const CallFingerprint& call, CheckedRanks checked, MpiWork& work);

// The same between neighbours, and sends at most kPieceBytes of values to the next rank; those of the previous rank are
// stored in `received` once the check has passed. `sent` is copied and may be overwritten at once.
void AddCallCheckWithValues(const MpiGroup& group, const CallFingerprint& call, ConstBuffer sent,
                            Buffer received, MpiWork& work);

// An operation that runs concurrently with its check: complete when both are.
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
