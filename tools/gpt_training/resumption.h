// A run that goes on: which checkpoint, and whether it is one of this run's model and text.
//
//   PLAIT_ASSIGN_OR_RETURN(Resumption resumption, OpenResumption(config, corpus, world));
//   ... a ShardedGpt of the settings ...
//   PLAIT_RETURN_IF_ERROR(TakeState(resumption, sharded));
//
// Collective; errors are the same on all ranks.
#ifndef PLAIT_TOOLS_GPT_TRAINING_RESUMPTION_H_
#define PLAIT_TOOLS_GPT_TRAINING_RESUMPTION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/checkpoint.h"
#include "tools/gpt_training/config.h"
#include "tools/gpt_training/corpus.h"
#include "tools/gpt_training/run_state.h"
#include "tools/gpt_training/sharded_gpt.h"

namespace plait::gpt_training {

struct Resumption {
  parallel::Checkpoint checkpoint;
  RunState state;
};

// --resume: a checkpoint, or a folder whose newest complete one counts. NotFound; FailedPrecondition where
// the text has another vocabulary; errors of Checkpoint.
absl::StatusOr<Resumption> OpenResumption(const Config& config, const Corpus& corpus,
                                          const comm::Communicator& world);

// Parameters and moments, on any strategy and mesh.
absl::Status TakeState(Resumption& resumption, ShardedGpt& sharded);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_RESUMPTION_H_
