#include "tools/training/epoch_sampler.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace plait::training {
namespace {

data::SamplerOptions OfAStep(data::SamplerOptions options, int micro_batches) {
  options.batch_size *= micro_batches;
  return options;
}

}  // namespace

EpochSampler::EpochSampler(const data::SamplerOptions& options, int micro_batches, int leaves)
    : samples_(options.samples),
      micro_batches_(micro_batches),
      leaves_(leaves),
      sampler_(OfAStep(options, micro_batches)) {}

std::vector<std::int64_t> EpochSampler::Next(int k, int data_rank, int data_ranks) {
  if (k == 0) {
    auto step = sampler_.Next();
    PLAIT_CHECK(step.has_value()) << "a step behind the end of an epoch";
    step_ = *std::move(step);
  }
  if (leaves_ > 0) {
    const absl::Span<const std::int64_t> leaf =
        data::ShareOf(step_, data_rank * (leaves_ / data_ranks) + k, leaves_);
    return {leaf.begin(), leaf.end()};
  }
  const absl::Span<const std::int64_t> all = data::ShareOf(step_, k, micro_batches_);
  const absl::Span<const std::int64_t> mine = data::ShareOf(all, data_rank, data_ranks);
  first_sample_ = mine.data() - all.data();
  return {mine.begin(), mine.end()};
}

std::string EpochSampler::Position() const {
  return absl::StrCat("at epoch ", epoch() + 1, ", sample ", position());
}

void EpochSampler::Save(parallel::CheckpointState& state) const {
  const data::SamplerState sampler = sampler_.state();
  state.integers["sampler.seed"] = static_cast<std::int64_t>(sampler.seed);
  state.integers["sampler.epoch"] = sampler.epoch;
  state.integers["sampler.position"] = sampler.position;
}

absl::Status EpochSampler::Restore(const parallel::Checkpoint& checkpoint) {
  data::SamplerState sampler;
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t seed, checkpoint.Integer("sampler.seed"));
  sampler.seed = static_cast<std::uint64_t>(seed);
  PLAIT_ASSIGN_OR_RETURN(sampler.epoch, checkpoint.Integer("sampler.epoch"));
  PLAIT_ASSIGN_OR_RETURN(sampler.position, checkpoint.Integer("sampler.position"));
  return base::Prefixed(sampler_.Restore(sampler), checkpoint.folder());
}

}  // namespace plait::training
