// Tikhonov regularisation in time of the weights of a row of equal blocks, on their shards:
//
//   R = factor / 2 sum_j |theta_{j+1} - theta_j|^2      over neighbouring blocks
//
// (Guenther, Ruthotto, Schroder, Cyr, Gauger: Layer-parallel training of deep residual neural networks, SIAM J. Math. Data
// Sci. 2, 2020, equation 6, with factor = beta / dt). Equal blocks have equal flat buffers, so that a rank's shards of two
// neighbours are the same elements of both: no parameter is gathered. Where ranks have parts of the row, each sends the
// shards of its first and its last block to the neighbour.
#ifndef PLAIT_PARALLEL_OPTIM_TIME_TIKHONOV_H_
#define PLAIT_PARALLEL_OPTIM_TIME_TIKHONOV_H_

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {

// Where this rank's blocks lie in the row.
struct RowNeighbours {
  comm::Communicator axis = comm::Communicator::Self();  // whose ranks have parts of the row
  int before = -1,
      behind = -1;  // ranks of it with the blocks next to this rank's; -1: none, or this rank has no block
};

// Adds dR/dtheta to the gradients of the engine's blocks; after Backward, before GradientNorm and the optimizer's step.
// Bitwise identical for any split of the row and any sharding, as far as masters have the same. Collective along
// `neighbours.axis`; errors of masters that live in a file, of this rank alone. The program ends where blocks are not equal.
absl::Status AddTimeTikhonov(DataParallel& dp, double factor, const RowNeighbours& neighbours = {});

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_TIME_TIKHONOV_H_
