// The data of a run, opened on every rank, and batches of it as tensors.
//
//   PLAIT_ASSIGN_OR_RETURN(const data::SequenceSet set, OpenData(settings, comm, print));
//   models::Batch batch = MakeBatch(set.train, indices, at::kFloat);
#ifndef PLAIT_TOOLS_GRU_TRAINING_BATCHES_H_
#define PLAIT_TOOLS_GRU_TRAINING_BATCHES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "data/sequence_set.h"
#include "models/block_model.h"
#include "tools/gru_training/settings.h"

namespace plait::gru_training {

// Collective over `communicator`. Rank 0 prepares the data (data/har/prepare.h), every rank reads them. Errors are the
// same on all ranks: INVALID_ARGUMENT for sequences shorter than --sequence-length, errors of preparing and reading.
// `print` gets, on rank 0, a line for each thing that was done.
absl::StatusOr<data::SequenceSet> OpenData(const GruSettings& settings,
                                           const comm::Communicator& communicator,
                                           const std::function<void(const std::string&)>& print);

// Inputs (batch, seq, channels) of `dtype`; targets (batch), int64. On the host. Local.
models::Batch MakeBatch(const data::SequenceSplit& split, absl::Span<const std::int64_t> indices,
                        at::ScalarType dtype);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_BATCHES_H_
