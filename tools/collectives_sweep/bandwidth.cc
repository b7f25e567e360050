#include "tools/collectives_sweep/bandwidth.h"

#include <algorithm>
#include <array>

namespace plait::collectives_sweep {
namespace {

constexpr std::array<absl::string_view, kSweptOperations> kNames = {
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter",
    "all_to_all", "gather", "scatter",   "send_recv",  "barrier"};

}  // namespace

absl::string_view Name(Swept operation) { return kNames[static_cast<std::size_t>(operation)]; }

std::vector<Swept> AllSwept() {
  std::vector<Swept> all;
  for (int i = 0; i < kSweptOperations; ++i) all.push_back(static_cast<Swept>(i));
  return all;
}

bool HasParts(Swept operation) {
  switch (operation) {
    case Swept::kAllGather:
    case Swept::kReduceScatter:
    case Swept::kAllToAll:
    case Swept::kGather:
    case Swept::kScatter:
      return true;
    default:
      return false;
  }
}

bool Reduces(Swept operation) {
  return operation == Swept::kAllReduce || operation == Swept::kReduce || operation == Swept::kReduceScatter;
}

bool HasRoot(Swept operation) {
  return operation == Swept::kReduce || operation == Swept::kBroadcast || operation == Swept::kGather ||
         operation == Swept::kScatter;
}

double BusFactor(Swept operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (operation == Swept::kAllReduce) return 2 * others;
  if (HasParts(operation)) return others;
  return operation == Swept::kBarrier ? 0 : 1;
}

MessageSize SizeOf(Swept operation, std::int64_t bytes, std::int64_t element_bytes, int ranks) {
  if (operation == Swept::kBarrier) return {};
  const std::int64_t parts = HasParts(operation) ? ranks : 1;
  const std::int64_t count = std::max<std::int64_t>(1, bytes / (element_bytes * parts));
  return {count * parts * element_bytes, count};
}

std::vector<std::int64_t> Sizes(std::int64_t smallest, std::int64_t largest, int factor) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = smallest; size < largest; size *= factor) sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

}  // namespace plait::collectives_sweep
