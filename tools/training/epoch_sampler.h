// Samples of an epoch, drawn for all data-parallel ranks together, in micro-batches.
//
//   EpochSampler sampler({.samples = 60000, .batch_size = 128, .seed = 1}, micro_batches);
//   for (int k = 0; k < micro_batches; ++k) {
//     const std::vector<std::int64_t> mine = sampler.Next(k, data_rank, data_ranks);
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
  // `options.batch_size` counts samples of a micro-batch over all ranks. With `leaves` > 0 (--reproducible) the samples
  // of all `micro_batches` are cut into `leaves` parts; each rank takes consecutive parts as its micro-batches, and
  // first_sample() is 0 in each.
  explicit EpochSampler(const data::SamplerOptions& options, int micro_batches = 1, int leaves = 0);

  // Indices of the samples in this rank's part of micro-batch k. Draws the samples of the step at k = 0. Must not be
  // called when at_epoch_end().
  std::vector<std::int64_t> Next(int k, int data_rank, int data_ranks);
  // Index of the part's first sample within the micro-batch over all ranks.
  std::int64_t first_sample() const { return first_sample_; }
  std::int64_t step_samples() const { return static_cast<std::int64_t>(step_.size()); }

  bool at_epoch_end() const { return sampler_.position() == samples_; }
  void NextEpoch() { sampler_.NextEpoch(); }
  std::int64_t epoch() const { return sampler_.epoch(); }  // from 0
  std::int64_t position() const { return sampler_.position(); }
  std::int64_t samples() const { return samples_; }
  std::int64_t steps_per_epoch() const { return sampler_.batches_per_epoch(); }
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
