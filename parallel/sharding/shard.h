// A rank's part of a model's states: its shard of every flat buffer, and the tensors that are replicated.
//
//   for (const Shard& shard : dp.shards()) {
//     for (const FlatSlice& slice : shard.layout->Slices(shard.rank)) {
//       const models::ParameterSpec& parameter = *shard.parameters[slice.parameter];
//       if (shard.primary[slice.parameter]) Save(parameter, shard.master, slice);
//     }
//   }
#ifndef PLAIT_PARALLEL_SHARDING_SHARD_H_
#define PLAIT_PARALLEL_SHARDING_SHARD_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.h"
#include "models/block_model.h"
#include "parallel/sharding/flat_layout.h"

namespace plait::parallel {

// This rank's shard of a flat buffer: of a unit, or of one of its parts (unit_parts.h).
struct Shard {
  const FlatLayout* layout;
  int rank = 0;           // along the unit's shard axis
  bool of_block = false;  // else of a root unit
  // The ranks that have the other shards, in order; not owned, valid as long as the engine.
  const comm::Communicator* gather = nullptr;
  // By parameter of the layout.
  std::vector<const models::ParameterSpec*> parameters = {};
  // Whether this rank's elements are the ones that count in norms and are saved: its coordinate is 0 along every axis
  // with the same values.
  std::vector<bool> primary = {};
  at::Tensor master = {};  // (layout->shard_count()), in the units' original type; undefined if in a store
  // The same type and shape; the sum over all data ranks after the last Backward, undefined before the first.
  at::Tensor gradient = {};
};

// A frozen parameter or a buffer.
struct ReplicatedTensor {
  const models::ParameterUnit* unit;
  const models::ParameterSpec* parameter;
  bool primary = false;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_SHARD_H_
