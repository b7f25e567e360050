// The ranks of a job that does not exist, each seen alone: no call waits for another rank, and all are counted as those
// of real ones.
//
//   comm::CountedJob job(4096, {{"pp", {8}}, {"dp_shard", {64}}, {"tp", {8}}});
//   comm::Communicator world = job.World(/*rank=*/17);
//   comm::Communicator tp = world.Split(color, /*key=*/1, "tp");  // rank 1 of 8
//   world.stats();                                                // calls and bytes by axis
//
// A rank knows nothing of the others, so that
//   - a group that is split off the world has the size that the job was given for its name, one that is split off a
//     group under that group's name, or one that begins with it as "pp_shapes" with "pp", has all of it, and a rank's key is its rank in the new group;
//   - tensors on the meta device take part (comm/tensor_collectives.h): nothing is moved, sizes are counted;
//   - collectives under way are complete when somebody waits for them and no sooner, as those of the slowest network;
//     messages are at once;
//   - with buffers in memory a rank gets what it would get if the others brought what it brings: all-gathers copy
//     its part, an all-to-all gives its own part for itself in every rank's place, reductions leave its values, and a message received is the latest one of as many bytes that any
//     rank of the job has sent (the stages of a pipeline pass states of one shape).
// Local.
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
  // By name, the ranks of the first group that a rank's world is split into, the second, ...; the last one is that of
  // all further ones.
  using GroupSizes = std::map<std::string, std::vector<int>>;
  CountedJob(int ranks, GroupSizes sizes);

  // With counters of its own. Groups outlive the job.
  Communicator World(int rank) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_COUNTING_COUNTED_JOB_H_
