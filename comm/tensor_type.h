// The DataType of a tensor's elements.
#ifndef PLAIT_COMM_TENSOR_TYPE_H_
#define PLAIT_COMM_TENSOR_TYPE_H_

#include <c10/core/ScalarType.h>

#include "comm/buffer.h"

namespace plait::comm {

// Local. Aborts for types that collectives do not support (comm/tensor_collectives.h).
DataType TypeOf(at::ScalarType type);

// Whether collectives support the type. Local.
bool HasDataType(at::ScalarType type);

}  // namespace plait::comm

#endif  // PLAIT_COMM_TENSOR_TYPE_H_
