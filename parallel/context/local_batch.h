// This rank's tokens of a batch of whole sequences.
//
//   const models::Batch mine = LocalBatch(axis, batch);      // the axis outlives its use
//   models::LossSum loss = models::RunModel(model, mine);    // of this rank's tokens
//
// Inputs and targets are (batch, seq) of tokens. Alternatively the model turns inputs, such as images, into `sequence`
// tokens: inputs and targets are then not split, and the model embeds the tokens of Batch::sequence. Layers that act on
// single tokens need no change; attention and positional embeddings use Batch::sequence. Every rank uses all
// parameters for its own tokens, so gradients are summed along the axis (data_mesh.h).
#ifndef PLAIT_PARALLEL_CONTEXT_LOCAL_BATCH_H_
#define PLAIT_PARALLEL_CONTEXT_LOCAL_BATCH_H_

#include "models/block_model.h"
#include "parallel/context/context_axis.h"

namespace plait::context_parallel {

// Local. Sequences that cannot be split evenly are padded with token 0 and target -1 (ignored). Returns `batch` itself
// on one rank. `sequence`: 0 if inputs are tokens.
models::Batch LocalBatch(const ContextAxis& axis, const models::Batch& batch, std::int64_t sequence = 0);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_LOCAL_BATCH_H_
