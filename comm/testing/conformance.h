// The conformance suite of backends, as a library of checks: each collective against a serial oracle.
//
//   TEST(Conformance, AllReduce) { comm::testing::CheckAllReduce(World(), HostMemory()); }
//
// The oracle computes, on every rank, the inputs of all ranks (a function of rank and index) and reduces them in
// rank order, in float64. Inputs are small integers, or powers of two for products, so that results are exact in every
// type and must be bitwise identical; CheckRounding covers inexact sums with a derived bound.
#ifndef PLAIT_COMM_TESTING_CONFORMANCE_H_
#define PLAIT_COMM_TESTING_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace plait::comm::testing {

// The memory of a backend's buffers. Implementations outlive all buffers.
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

// Blocking and async, all types and reductions, counts 0, 1, 3, 1037 and 4099, in place or not; all roots (CheckReduce:
// one root per count).
void CheckAllReduce(const Communicator& comm, Memory& memory);
void CheckReduce(const Communicator& comm, Memory& memory);
void CheckReduceScatter(const Communicator& comm, Memory& memory);
// u8 sums modulo 256, short and long.
void CheckWrappingSums(const Communicator& comm, Memory& memory);
void CheckBroadcast(const Communicator& comm, Memory& memory);
void CheckAllGather(const Communicator& comm, Memory& memory);
void CheckGather(const Communicator& comm, Memory& memory);
void CheckScatter(const Communicator& comm, Memory& memory);
void CheckAllToAll(const Communicator& comm, Memory& memory);
void CheckAllToAllV(const Communicator& comm, Memory& memory);
void CheckSendReceive(const Communicator& comm, Memory& memory);
// Several messages with the same tag in flight: received in the order in which they were sent.
void CheckMessagesOfOneTag(const Communicator& comm, Memory& memory);
void CheckSplit(const Communicator& comm, Memory& memory);
// Several operations in flight at once, completed in another order than they were started.
void CheckOverlappingWork(const Communicator& comm, Memory& memory);
// Many operations on two overlapping communicators; every rank waits for them in a different order.
void CheckOrdersOfWaiting(const Communicator& comm, Memory& memory);
// Blocking collectives, messages and a split while a long operation is in flight: some ranks make them before
// they wait for it, others afterwards.
void CheckBlockingBesideWork(const Communicator& comm, Memory& memory);
// All-reduce, reduce-scatter and all-gather of some hundred thousand elements, not a multiple of ranks or pieces.
void CheckLongBuffers(const Communicator& comm, Memory& memory);
// Random values: float sums within the error bound of recursive summation, half precision rounded once, and bitwise
// identical results on every rank and in every repetition.
void CheckRounding(const Communicator& comm, Memory& memory);

}  // namespace plait::comm::testing

#endif  // PLAIT_COMM_TESTING_CONFORMANCE_H_
