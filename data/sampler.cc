#include "data/sampler.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/seed.h"

namespace plait::data {

Sampler::Sampler(const SamplerOptions& options) : options_(options), order_(options.samples) {
  PLAIT_CHECK(options.samples > 0 && options.batch_size > 0)
      << options.samples << " samples, batches of " << options.batch_size;
  state_.seed = options.seed;
  Order();
}

void Sampler::Order() {
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  if (!options_.shuffle) return;
  base::RandomStream stream(base::DeriveSeed(state_.seed, "sampler", state_.epoch));
  base::Shuffle(stream, absl::MakeSpan(order_));
}

std::optional<std::vector<std::int64_t>> Sampler::Next() {
  if (state_.position >= options_.samples) return std::nullopt;
  const std::int64_t end = std::min(state_.position + options_.batch_size, options_.samples);
  std::vector<std::int64_t> batch(order_.begin() + state_.position, order_.begin() + end);
  state_.position = end;
  return batch;
}

void Sampler::NextEpoch() {
  ++state_.epoch;
  state_.position = 0;
  Order();
}

std::int64_t Sampler::batches_per_epoch() const {
  return (options_.samples + options_.batch_size - 1) / options_.batch_size;
}

absl::Status Sampler::Restore(const SamplerState& state) {
  if (state.epoch < 0 || state.position < 0 || state.position > options_.samples) {
    return absl::InvalidArgumentError(absl::StrCat("sampler state of epoch ", state.epoch, ", sample ",
                                                   state.position, " does not belong to ", options_.samples,
                                                   " samples"));
  }
  state_ = state;
  Order();
  return absl::OkStatus();
}

absl::Span<const std::int64_t> ShareOf(absl::Span<const std::int64_t> batch, std::int64_t rank,
                                       std::int64_t size) {
  PLAIT_CHECK(rank >= 0 && rank < size) << "rank " << rank << " of " << size;
  const std::int64_t count = batch.size();
  const std::int64_t begin = count * rank / size, end = count * (rank + 1) / size;
  return batch.subspan(begin, end - begin);
}

}  // namespace plait::data
