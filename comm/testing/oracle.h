// What the ranks of a conformance check hold, and what must come of it, computed serially. Private to
// comm/testing.
#ifndef PLAIT_COMM_TESTING_ORACLE_H_
#define PLAIT_COMM_TESTING_ORACLE_H_

#include <cstdint>
#include <vector>

#include "comm/buffer.h"
#include "comm/operation.h"

namespace plait::comm::testing {

using Values = std::vector<double>;

// Small integers, exact in every type; 0 or 1 for bool.
Values Input(int rank, std::int64_t count, DataType type);
// The same, but powers of two for products: exact in every floating type, and modulo 256 in u8.
Values InputFor(ReduceOp op, int rank, std::int64_t count, DataType type);
// InputFor of ranks 0 to size - 1 reduced in this order, as `type` stores it.
Values Reduced(ReduceOp op, int size, std::int64_t count, DataType type);
// Input of ranks 0 to size - 1, one behind the other.
Values Gathered(int size, std::int64_t count, DataType type);

}  // namespace plait::comm::testing

#endif  // PLAIT_COMM_TESTING_ORACLE_H_
