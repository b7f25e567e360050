// Tikhonov regularisation in time for the weights of a row of equal blocks:
//
//   R = factor / 2 sum_j |theta_{j+1} - theta_j|^2      over neighbouring blocks
//
// (Guenther, Ruthotto, Schroder, Cyr, Gauger: Layer-parallel training of deep residual neural networks, SIAM J. Math.
// Data Sci. 2, 2020, equation 6, with factor = beta / dt). Works on shards: equal blocks have equal flat buffers, so a
// rank's shards of two neighbouring blocks hold the same elements, and no parameter is gathered. If the row is
// distributed over ranks, each sends the shards of its first and last block to its neighbours.
#ifndef PLAIT_PARALLEL_OPTIM_TIME_TIKHONOV_H_
#define PLAIT_PARALLEL_OPTIM_TIME_TIKHONOV_H_

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {

// The ranks with the neighbouring blocks of the row.
struct RowNeighbours {
  comm::Communicator axis = comm::Communicator::Self();  // over whose ranks the row is distributed
  int before = -1,
      behind = -1;  // ranks of `axis` with the block before and after; -1: none, or this rank has no block
};

// Adds dR/dtheta to the gradients of the engine's blocks; call after Backward and before GradientNorm and the
// optimizer's step. For bitwise identical masters, the result does not depend on the distribution of the row or the
// sharding. Collective over `neighbours.axis`, and over the axes of DataParallel::SumPartialGradients, which it calls.
// Returns errors of this rank's offloaded masters. The program ends if blocks are not equal or have no gradients.
absl::Status AddTimeTikhonov(DataParallel& dp, double factor, const RowNeighbours& neighbours = {});

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_TIME_TIKHONOV_H_
