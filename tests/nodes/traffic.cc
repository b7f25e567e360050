// traffic OPERATION MEGABYTES CALLS: makes the same call many times; traffic_test.py counts the bytes that leave the
// nodes.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "comm/session_main.h"

namespace {

using plait::comm::BufferOf;
using plait::comm::Communicator;

absl::Status Exchange(const Communicator& world, const std::string& operation, std::int64_t megabytes,
                      int calls) {
  const std::int64_t part_count =
      megabytes * 1'000'000 / static_cast<std::int64_t>(sizeof(float)) / world.size();
  std::vector<float> part(part_count), whole(part_count * world.size());
  const auto part_buffer = BufferOf(absl::MakeSpan(part)), whole_buffer = BufferOf(absl::MakeSpan(whole));
  for (int call = 0; call < calls; ++call) {
    if (operation == "all_reduce") {
      world.AllReduce(whole_buffer);
    } else if (operation == "all_gather") {
      world.AllGather(part_buffer, whole_buffer);
    } else if (operation == "reduce_scatter") {
      world.ReduceScatter(whole_buffer, part_buffer);
    } else {
      return absl::InvalidArgumentError("unknown operation " + operation);
    }
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return plait::comm::RunMain(argc, argv, {}, [&](plait::comm::Session& session) {
    if (argc != 4) return absl::InvalidArgumentError("expected OPERATION MEGABYTES CALLS");
    return Exchange(session.world(), argv[1], std::atoll(argv[2]), std::atoi(argv[3]));
  });
}
