// The order in which a training program takes its samples: shuffled anew every epoch, the same for any number
// of ranks, and resumable at any batch.
//
//   Sampler sampler({.samples = 7352, .batch_size = 100, .seed = 1234});
//   for (; sampler.epoch() < 4; sampler.NextEpoch()) {
//     while (std::optional<std::vector<std::int64_t>> batch = sampler.Next()) Train(*batch);
//   }
//   SamplerState state = sampler.state();     // three integers for a checkpoint
//   sampler.Restore(state);
//
// Epoch e is a Fisher-Yates shuffle of 0..samples-1 with the random stream DeriveSeed(seed, "sampler", e)
// (base/seed.h): integer arithmetic only, so the order is the same on every platform. The last batch of an
// epoch may be smaller (as drop_last=False in PyTorch); no sample is dropped or repeated. Local, no
// communication: ranks with the same (samples, batch_size, seed) get the same batches, and take their part of
// each with ShareOf.
#ifndef PLAIT_DATA_SAMPLER_H_
#define PLAIT_DATA_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace plait::data {

struct SamplerOptions {
  std::int64_t samples = 0;     // > 0
  std::int64_t batch_size = 1;  // > 0, over all ranks
  std::uint64_t seed = 0;
  bool shuffle = true;  // false: 0, 1, 2, ... in every epoch, as for testing
};

// The sampler's position. Restoring it on the same samples continues with the next batch, also in the middle of
// an epoch and on another number of ranks.
struct SamplerState {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;     // from 0
  std::int64_t position = 0;  // samples taken in this epoch

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  // Indices of the next batch; none at the end of the epoch.
  std::optional<std::vector<std::int64_t>> Next();
  // Moves to the start of the next epoch, whether or not this one is finished.
  void NextEpoch();

  std::int64_t epoch() const { return state_.epoch; }
  std::int64_t position() const { return state_.position; }
  std::int64_t batches_per_epoch() const;

  SamplerState state() const { return state_; }
  // Takes the state's seed too. InvalidArgument if the state is not possible with this number of samples.
  absl::Status Restore(const SamplerState& state);

 private:
  void Order();

  SamplerOptions options_;
  SamplerState state_;
  std::vector<std::int64_t> order_;
};

// Returns the part of a batch for rank `rank` of `size`: contiguous, possibly empty. Sizes differ by at most one;
// the parts of all ranks, concatenated, are the batch.
absl::Span<const std::int64_t> ShareOf(absl::Span<const std::int64_t> batch, std::int64_t rank,
                                       std::int64_t size);

}  // namespace plait::data

#endif  // PLAIT_DATA_SAMPLER_H_
