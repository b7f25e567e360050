#include "comm/operation.h"

#include <array>

namespace plait::comm {

absl::string_view Name(Operation operation) {
  static constexpr std::array<absl::string_view, kOperations> kNames = {
      "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "all_to_all_v", "reduce",
      "gather",     "scatter",   "barrier",    "split",          "send",       "receive"};
  return kNames[static_cast<int>(operation)];
}

absl::string_view Name(ReduceOp op) {
  static constexpr std::array<absl::string_view, 5> kNames = {"sum", "product", "min", "max", "average"};
  return kNames[static_cast<int>(op)];
}

ConstBuffer Payload(const Request& request) {
  switch (request.operation) {
    case Operation::kAllReduce:
    case Operation::kBroadcast:
    case Operation::kReceive:
    case Operation::kScatter:
      return request.out;
    default:
      return request.in;
  }
}

std::int64_t WireBytes(const Request& request, int rank, int size) {
  const ConstBuffer payload = Payload(request);
  const bool widened = IsReduction(request.operation) && IsHalfPrecision(payload.type);
  const std::int64_t bytes = payload.bytes() * (widened ? 2 : 1);
  const std::int64_t others = size - 1;
  switch (request.operation) {
    case Operation::kAllReduce:
      return 2 * bytes * others / size;
    case Operation::kReduceScatter:
    case Operation::kBroadcast:
    case Operation::kAllToAll:
      return bytes * others / size;
    case Operation::kAllGather:
      return bytes * others;
    case Operation::kAllToAllV:
      return bytes - request.send_counts[rank] * SizeInBytes(payload.type);
    case Operation::kReduce:
    case Operation::kGather:
      return rank == request.root ? 0 : bytes;
    case Operation::kScatter:
      return rank == request.root ? bytes * others : 0;
    case Operation::kSend:
      return request.root == rank ? 0 : bytes;
    case Operation::kReceive:
    case Operation::kBarrier:
    case Operation::kSplit:
      return 0;
  }
  return 0;
}

}  // namespace plait::comm
