// Samples of an epoch, drawn for all data-parallel ranks together, in micro-batches.
//
//   EpochSampler sampler({.samples = 60000, .batch_size = 128, .seed = 1});
//   for (int k = 0; k < micro_batches; ++k) {
//     const std::vector<std::int64_t> mine = sampler.Next(k, micro_batches, data_rank, data_ranks);
//     ... sampler.step_samples() ...                          // of this step, over micro-batches and ranks
//   }
//   if (sampler.at_epoch_end()) sampler.NextEpoch();
//
// The order does not depend on the number of ranks. Local.
#ifndef PLAIT_TOOLS_TRAINING_EPOCH_SAMPLER_H_
#define PLAIT_TOOLS_TRAINING_EPOCH_SAMPLER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/sampler.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"

namespace plait::training {

class EpochSampler {
 public:
  // `options.batch_size`: of a micro-batch over all ranks. `leaves` > 0: these `micro_batches` together are cut into so
  // many parts, of which each rank has consecutive ones as its micro-batches, and numbers samples from 0 in each.
  explicit EpochSampler(const data::SamplerOptions& options, int micro_batches = 1, int leaves = 0);

  // This rank's part of micro-batch k of the step; the step is drawn at k = 0. Not at the end of an epoch.
  std::vector<std::int64_t> Next(int k, int data_rank, int data_ranks);
  // Number of the part's first sample in the micro-batch of all ranks.
  std::int64_t first_sample() const { return first_sample_; }
  std::int64_t step_samples() const { return static_cast<std::int64_t>(step_.size()); }

  bool at_epoch_end() const { return sampler_.position() == samples_; }
  void NextEpoch() { sampler_.NextEpoch(); }
  std::int64_t epoch() const { return sampler_.epoch(); }  // from 0
  std::int64_t position() const { return sampler_.position(); }
  std::int64_t samples() const { return samples_; }
  std::int64_t run_position() const { return epoch() * samples_ + position(); }  // of all epochs
  // "at epoch 2, sample 80".
  std::string Position() const;

  void Save(parallel::CheckpointState& state) const;
  absl::Status Restore(const parallel::Checkpoint& checkpoint);

 private:
  std::int64_t samples_;
  int micro_batches_, leaves_;
  data::Sampler sampler_;
  std::vector<std::int64_t> step_;
  std::int64_t first_sample_ = 0;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_EPOCH_SAMPLER_H_
