// This rank's tokens of a batch of whole sequences.
//
//   const models::Batch mine = LocalBatch(axis, batch);      // the axis outlives its use
//   models::LossSum loss = models::RunModel(model, mine);    // of this rank's tokens
//
// Inputs and targets are (batch, seq) of tokens. Or inputs are what a model makes `sequence` tokens of, images say:
// these and their targets stay whole, and the model embeds the tokens of Batch::sequence. What a model does with
// tokens one by one needs no more; attention and positions follow Batch::sequence. Every parameter is used by all
// ranks, each for its tokens: gradients are summed along the axis (data_mesh.h).
#ifndef PLAIT_PARALLEL_CONTEXT_LOCAL_BATCH_H_
#define PLAIT_PARALLEL_CONTEXT_LOCAL_BATCH_H_

#include "models/block_model.h"
#include "parallel/context/context_axis.h"

namespace plait::context_parallel {

// Local. Sequences that the axis cannot split evenly are padded with token 0, whose targets are ignored. With one
// rank the batch itself. `sequence`: 0 where inputs are tokens.
models::Batch LocalBatch(const ContextAxis& axis, const models::Batch& batch, std::int64_t sequence = 0);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_LOCAL_BATCH_H_
