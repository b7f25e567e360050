// MPI's datatypes and operations for Plait's.
#ifndef PLAIT_COMM_MPI_MPI_TYPES_H_
#define PLAIT_COMM_MPI_MPI_TYPES_H_

#include <mpi.h>

#include <cstdint>

#include "absl/strings/string_view.h"
#include "comm/operation.h"

namespace plait::comm {

// Half precision is sent as 16-bit integers, and never reduced in this form.
MPI_Datatype MpiType(DataType type);
// MPI_SUM for an average; the caller divides.
MPI_Op MpiReduceOp(ReduceOp op, DataType type);

// Throws TransportError with MPI's own message.
void CheckMpi(int code, absl::string_view call);

// `count` contiguous elements with an extent of `stride` elements: the piece of each part in a split message.
class StridedType {
 public:
  StridedType(DataType type, std::int64_t count, std::int64_t stride);
  ~StridedType() { MPI_Type_free(&type_); }
  StridedType(const StridedType&) = delete;
  StridedType& operator=(const StridedType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_TYPES_H_
