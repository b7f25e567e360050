#include "comm/mpi/mpi_types.h"

#include "absl/strings/str_cat.h"
#include "comm/transport_error.h"

namespace plait::comm {

MPI_Datatype MpiType(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return MPI_FLOAT;
    case DataType::kFloat64:
      return MPI_DOUBLE;
    case DataType::kBFloat16:
    case DataType::kFloat16:
      return MPI_UINT16_T;
    case DataType::kInt64:
      return MPI_INT64_T;
    case DataType::kInt32:
      return MPI_INT32_T;
    case DataType::kUInt8:
      return MPI_UINT8_T;
    case DataType::kBool:
      return MPI_C_BOOL;
  }
  return MPI_DATATYPE_NULL;
}

namespace {

void AddBytes(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const std::uint8_t*>(in);
  auto* to = static_cast<std::uint8_t*>(in_out);
  for (int i = 0; i < *count; ++i) to[i] = static_cast<std::uint8_t>(to[i] + from[i]);
}

// Open MPI's vector instructions saturate MPI_SUM of 8 bits at 255, in whole vectors only. Never freed: MPI ends first.
MPI_Op WrappingSum() {
  static const MPI_Op sum = [] {
    MPI_Op made = MPI_OP_NULL;
    CheckMpi(MPI_Op_create(AddBytes, /*commute=*/1, &made), "MPI_Op_create");
    return made;
  }();
  return sum;
}

}  // namespace

MPI_Op MpiReduceOp(ReduceOp op, DataType type) {
  if (op == ReduceOp::kSum && type == DataType::kUInt8) return WrappingSum();
  const bool logical = type == DataType::kBool;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return logical ? MPI_LOR : MPI_SUM;
    case ReduceOp::kProduct:
      return logical ? MPI_LAND : MPI_PROD;
    case ReduceOp::kMin:
      return logical ? MPI_LAND : MPI_MIN;
    case ReduceOp::kMax:
      return logical ? MPI_LOR : MPI_MAX;
  }
  return MPI_OP_NULL;
}

void CheckMpi(int code, absl::string_view call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw TransportError(absl::StrCat(call, ": ", absl::string_view(text, length)));
}

StridedType::StridedType(DataType type, std::int64_t count, std::int64_t stride) {
  MPI_Datatype block = MPI_DATATYPE_NULL;
  CheckMpi(MPI_Type_contiguous(static_cast<int>(count), MpiType(type), &block), "MPI_Type_contiguous");
  CheckMpi(MPI_Type_create_resized(block, 0, stride * SizeInBytes(type), &type_), "MPI_Type_create_resized");
  CheckMpi(MPI_Type_free(&block), "MPI_Type_free");
  CheckMpi(MPI_Type_commit(&type_), "MPI_Type_commit");
}

}  // namespace plait::comm
