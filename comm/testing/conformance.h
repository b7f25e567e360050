// What every backend has to do, as a library of checks: each collective against a serial oracle.
//
//   TEST(Conformance, AllReduce) { comm::testing::CheckAllReduce(World(), HostMemory()); }
//
// The oracle computes, on every rank, what all ranks hold (inputs are a function of rank and index) and
// reduces it in order of rank, in float64 or int64. Inputs are small integers, so that sums and products are
// exact in every type and the results must be equal bit for bit; CheckRounding covers inexact sums with a
// derived bound.
#ifndef PLAIT_COMM_TESTING_CONFORMANCE_H_
#define PLAIT_COMM_TESTING_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace plait::comm::testing {

// Where a backend's buffers live. Values cross as doubles: all inputs are exact in every type.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual Device device() const = 0;
  virtual void* Allocate(std::int64_t bytes) = 0;
  virtual void Free(void* data) = 0;
  virtual void CopyIn(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void CopyOut(void* to, const void* from, std::int64_t bytes) = 0;
};
Memory& HostMemory();

// Sync and async, all types and sizes (0, 1, a few, some thousands), all roots and operations, in place or
// not.
void CheckAllReduce(const Communicator& comm, Memory& memory);
void CheckReduce(const Communicator& comm, Memory& memory);
void CheckReduceScatter(const Communicator& comm, Memory& memory);
void CheckBroadcast(const Communicator& comm, Memory& memory);
void CheckAllGather(const Communicator& comm, Memory& memory);
void CheckGather(const Communicator& comm, Memory& memory);
void CheckScatter(const Communicator& comm, Memory& memory);
void CheckAllToAll(const Communicator& comm, Memory& memory);
void CheckAllToAllV(const Communicator& comm, Memory& memory);
void CheckSendReceive(const Communicator& comm, Memory& memory);
// Of one tag, in flight together: received in the order in which they were sent.
void CheckMessagesOfOneTag(const Communicator& comm, Memory& memory);
void CheckSplit(const Communicator& comm, Memory& memory);
// Several operations in flight at once, completed in another order than they were started.
void CheckOverlappingWork(const Communicator& comm, Memory& memory);
// Many more, on two communicators with ranks in common; every rank waits for them in an order of its own.
void CheckOrdersOfWaiting(const Communicator& comm, Memory& memory);
// Blocking collectives, messages and a split while a long operation is in flight: some ranks make them before
// they wait for it, others afterwards.
void CheckBlockingBesideWork(const Communicator& comm, Memory& memory);
// All-reduce, reduce-scatter and all-gather of some hundred thousand elements, not dividing by anything.
void CheckLongBuffers(const Communicator& comm, Memory& memory);
// Random values: float sums within the bound of recursive summation, half precision rounded once, and the
// same bits on every rank and in every repetition.
void CheckRounding(const Communicator& comm, Memory& memory);

}  // namespace plait::comm::testing

#endif  // PLAIT_COMM_TESTING_CONFORMANCE_H_
