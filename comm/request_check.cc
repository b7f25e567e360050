#include "comm/request_check.h"

#include <cstddef>
#include <numeric>

#include "base/check.h"

namespace plait::comm {
namespace {

using Counts = std::vector<std::int64_t>;

void CheckCounts(const Counts& counts, int size, std::int64_t total) {
  PLAIT_CHECK(static_cast<int>(counts.size()) == size) << "all_to_all_v: one count per rank is expected";
  for (const std::int64_t count : counts) PLAIT_CHECK(count >= 0) << "all_to_all_v: a count is negative";
  PLAIT_CHECK(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == total)
      << "all_to_all_v: the counts do not add up to the buffer";
}

bool Overlap(ConstBuffer a, ConstBuffer b) {
  const auto* a_begin = static_cast<const std::byte*>(a.data);
  const auto* b_begin = static_cast<const std::byte*>(b.data);
  return a_begin != nullptr && b_begin != nullptr && a.count > 0 && b.count > 0 &&
         a_begin < b_begin + b.bytes() && b_begin < a_begin + a.bytes();
}

bool SameMemory(ConstBuffer a, ConstBuffer b) { return a.data == b.data && a.count == b.count; }

// `part` lies where rank `index` of `size` has its part in `whole`.
bool IsPart(ConstBuffer part, ConstBuffer whole, int index) {
  return part.data == Slice(whole, index * part.count, part.count).data;
}

void CheckParts(ConstBuffer part, ConstBuffer whole, int size) {
  PLAIT_CHECK(part.type == whole.type) << "the two buffers have different types";
  PLAIT_CHECK(whole.count == part.count * size) << "the larger buffer must hold one part per rank";
}

void CheckOverlap(const Request& r, int rank) {
  if (!Overlap(r.in, r.out)) return;
  bool in_place = false;
  switch (r.operation) {
    case Operation::kAllGather:
    case Operation::kGather:
      in_place = IsPart(r.in, r.out, rank);
      break;
    case Operation::kReduceScatter:
    case Operation::kScatter:
      in_place = IsPart(r.out, r.in, rank);
      break;
    case Operation::kAllToAllV:
      break;
    default:
      in_place = SameMemory(r.in, r.out);
  }
  PLAIT_CHECK(in_place) << "the two buffers overlap";
}

void CheckShapes(const Request& r, int rank, int size) {
  switch (r.operation) {
    case Operation::kAllGather:
      return CheckParts(r.in, r.out, size);
    case Operation::kReduceScatter:
      return CheckParts(r.out, r.in, size);
    case Operation::kGather:
      if (rank == r.root) CheckParts(r.in, r.out, size);
      return;
    case Operation::kScatter:
      if (rank == r.root) CheckParts(r.out, r.in, size);
      return;
    case Operation::kReduce:
      if (rank == r.root) CheckParts(r.in, r.out, 1);
      return;
    case Operation::kAllToAll:
      CheckParts(r.in, r.out, 1);
      PLAIT_CHECK(r.in.count % size == 0) << "all_to_all: the count must be a multiple of the ranks";
      return;
    case Operation::kAllToAllV:
      PLAIT_CHECK(r.in.type == r.out.type) << "the two buffers have different types";
      CheckCounts(r.send_counts, size, r.in.count);
      CheckCounts(r.receive_counts, size, r.out.count);
      PLAIT_CHECK(r.send_counts[rank] == r.receive_counts[rank])
          << "all_to_all_v: the counts of what this rank sends to itself differ";
      return;
    default:
      return;
  }
}

}  // namespace

void CheckRequest(const Request& r, int rank, int size, Device device) {
  PLAIT_CHECK(r.in.count >= 0 && r.out.count >= 0) << "a buffer has a negative count";
  PLAIT_CHECK((r.in.count == 0 || r.in.device == device) && (r.out.count == 0 || r.out.device == device))
      << "the buffer is on another device than the communicator serves; see comm/tensor_collectives.h";
  const bool rooted = r.operation == Operation::kBroadcast || r.operation == Operation::kReduce ||
                      r.operation == Operation::kGather || r.operation == Operation::kScatter;
  if (rooted || IsPointToPoint(r.operation)) {
    PLAIT_CHECK(r.root >= 0 && r.root < size) << "the root or peer is not a rank of the group";
  }
  if (IsPointToPoint(r.operation)) {
    // MPI takes -1 for any tag; larger ones are the transport's own.
    PLAIT_CHECK(r.tag >= 0 && r.tag < (1 << 30)) << "the tag is not in [0, 2^30)";
  }
  if (IsReduction(r.operation) && r.reduce == ReduceOp::kAverage) {
    PLAIT_CHECK(IsFloatingPoint(Payload(r).type)) << "average needs a floating-point type";
  }
  CheckShapes(r, rank, size);
  CheckOverlap(r, rank);
}

}  // namespace plait::comm
