// Dry runs: any single rank of a job that does not exist. No call waits for another rank; calls and bytes are counted
// as for real ranks.
//
//   comm::CountedJob job(4096, {{"pp", {8}}, {"dp_shard", {64}}, {"tp", {8}}});
//   comm::Communicator world = job.World(/*rank=*/17);
//   comm::Communicator tp = world.Split(color, /*key=*/1, "tp");  // rank 1 of 8
//   world.stats();                                                // calls and bytes by axis
//
// A rank knows nothing of the others, therefore:
//   - A group split from the world has the size that the job was given for its name. A group split from another group
//     must have that group's name or begin with it, as "pp_shapes" with "pp", and has the same size. The key passed to
//     Split is the rank in the new group.
//   - Tensors on the meta device are accepted (comm/tensor_collectives.h): nothing is copied, sizes are counted.
//   - Collectives in flight are complete when they are waited for and not before, as on an infinitely slow network;
//     point-to-point messages are complete at once.
//   - Buffers with memory receive what they would if all ranks held this rank's data: all-gathers repeat its part,
//     all-to-alls repeat the part that it sends to itself, and reductions (sums too) return its values. A receive
//     returns the latest message of the same number of bytes that any rank of this job has sent (pipeline stages pass
//     states of one shape).
// Local. A group name without a size, a key out of range and a receive before any such send abort.
#ifndef PLAIT_COMM_COUNTING_COUNTED_JOB_H_
#define PLAIT_COMM_COUNTING_COUNTED_JOB_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace plait::comm {

class CountedJob {
 public:
  // By group name: the size of the first group of that name that a rank splits from its world, of the second, ...; the
  // last size is used for all further ones.
  using GroupSizes = std::map<std::string, std::vector<int>>;
  CountedJob(int ranks, GroupSizes sizes);

  // The world as `rank` sees it, with its own counters. May outlive the job.
  Communicator World(int rank) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_COUNTING_COUNTED_JOB_H_
