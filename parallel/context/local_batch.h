// This rank's tokens of a batch of whole sequences.
//
//   const models::Batch mine = LocalBatch(axis, batch);      // the axis outlives its use
//   models::LossSum loss = models::RunModel(model, mine);    // of this rank's tokens
//
// Inputs and targets are (batch, seq) of tokens. What a model does with tokens one by one needs no more; attention
// and positions follow Batch::sequence. Every parameter is used by all ranks, each for its tokens: gradients are
// partial along the axis (models::Placement::partial).
#ifndef PLAIT_PARALLEL_CONTEXT_LOCAL_BATCH_H_
#define PLAIT_PARALLEL_CONTEXT_LOCAL_BATCH_H_

#include "models/block_model.h"
#include "parallel/context/context_axis.h"

namespace plait::context_parallel {

// Local. Sequences that the axis cannot split evenly are padded with token 0, whose targets are ignored. With one
// rank the batch itself.
models::Batch LocalBatch(const ContextAxis& axis, const models::Batch& batch);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_LOCAL_BATCH_H_
