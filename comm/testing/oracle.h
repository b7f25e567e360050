// Inputs and expected results of the conformance checks, computed serially. Private to comm/testing.
#ifndef PLAIT_COMM_TESTING_ORACLE_H_
#define PLAIT_COMM_TESTING_ORACLE_H_

#include <cstdint>
#include <vector>

#include "comm/buffer.h"
#include "comm/operation.h"

namespace plait::comm::testing {

using Values = std::vector<double>;

// 0, 1, 2 or 3, exact in every type; 0 or 1 for bool.
Values Input(int rank, std::int64_t count, DataType type);
// The same, but 1 or 2 for products, which are then exact in every floating-point type, and modulo 256 in u8.
Values InputFor(ReduceOp op, int rank, std::int64_t count, DataType type);
// InputFor of ranks 0 to size - 1 reduced in rank order, rounded to `type`.
Values Reduced(ReduceOp op, int size, std::int64_t count, DataType type);
// Input of ranks 0 to size - 1, concatenated.
Values Gathered(int size, std::int64_t count, DataType type);

}  // namespace plait::comm::testing

#endif  // PLAIT_COMM_TESTING_ORACLE_H_
