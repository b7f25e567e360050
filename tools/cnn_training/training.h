// Training and testing, epoch by epoch, with checkpoints.
//
//   Training training(config, FlagSettings(), session, mesh, images, *net, outputs, log);
//   PLAIT_RETURN_IF_ERROR(training.Run(resumed));
//
// The batches are those of data/sampler, split over all ranks: the loss of a step is the mean over the whole
// batch's samples, so that an uneven last batch, of which ranks may have nothing, is no special case. Every
// rank does the same here, in the same order.
#ifndef PLAIT_TOOLS_CNN_TRAINING_TRAINING_H_
#define PLAIT_TOOLS_CNN_TRAINING_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "comm/session.h"
#include "data/sampler.h"
#include "parallel/checkpoint/async_saver.h"
#include "parallel/checkpoint/save_policy.h"
#include "parallel/optim/lr_schedule.h"
#include "tools/cnn_training/config.h"
#include "tools/cnn_training/images.h"
#include "tools/cnn_training/outputs.h"
#include "tools/cnn_training/run_state.h"
#include "tools/cnn_training/sharded_cnn.h"

namespace plait::cnn_training {

class Training {
 public:
  // What is passed outlives it. `settings`: the command line, for checkpoints.
  Training(const Config& config, const std::string& settings, comm::Session& session, const Images& images,
           ShardedCnn& net, Outputs& outputs, const base::Log& log);

  // From `state` on (of a checkpoint, or {} of a run that begins) to the end, or until it is stopped: by
  // SIGTERM or the job's end, with a checkpoint. OutOfRange where the loss is no number any more;
  // errors of --offload's folder, on all ranks.
  absl::Status Run(const RunState& state);

  bool stopped() const { return stopped_; }
  int epochs_done() const { return epochs_done_; }  // in this run
  double seconds() const { return seconds_; }       // of them, tests included

 private:
  absl::Status TrainEpoch();
  absl::Status TrainBatch(absl::Span<const std::int64_t> indices);
  absl::Status EndEpoch();
  absl::StatusOr<double> MeanTrainLoss() const;
  absl::Status KeepCheckpoints(bool end_of_epoch);
  absl::Status Save();

  const Config& config_;
  std::string settings_;
  comm::Session& session_;
  comm::Communicator world_;
  const Images& images_;
  ShardedCnn& net_;
  Outputs& outputs_;
  const base::Log& log_;
  parallel::LrSchedule schedule_;
  data::Sampler sampler_;
  parallel::SavePolicy policy_;
  parallel::AsyncSaver saver_;
  RunState state_;
  std::int64_t saved_step_ = -1;
  int epochs_done_ = 0;
  double seconds_ = 0;
  bool stopped_ = false;
};

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_TRAINING_H_
