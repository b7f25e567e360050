// The type of a tensor's elements as collectives name it.
#ifndef PLAIT_COMM_TENSOR_TYPE_H_
#define PLAIT_COMM_TENSOR_TYPE_H_

#include <c10/core/ScalarType.h>

#include "comm/buffer.h"

namespace plait::comm {

// Local. A type that collectives do not have (comm/tensor_collectives.h) is a programming error.
DataType TypeOf(at::ScalarType type);

}  // namespace plait::comm

#endif  // PLAIT_COMM_TENSOR_TYPE_H_
