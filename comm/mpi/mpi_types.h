// Plait's types and operations in MPI's terms.
#ifndef PLAIT_COMM_MPI_MPI_TYPES_H_
#define PLAIT_COMM_MPI_MPI_TYPES_H_

#include <mpi.h>

#include <cstdint>

#include "absl/strings/string_view.h"
#include "comm/operation.h"

namespace plait::comm {

// Half precision moves as 16-bit integers; it is never reduced as such.
MPI_Datatype MpiType(DataType type);
// Average is a sum here; the division follows.
MPI_Op MpiReduceOp(ReduceOp op, DataType type);

// Throws TransportError with MPI's own message.
void CheckMpi(int code, absl::string_view call);

// `count` elements that lie at the head of every block of `stride` elements: one part of a split message.
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
