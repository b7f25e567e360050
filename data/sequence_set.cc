#include "data/sequence_set.h"

#include <algorithm>

#include "base/check.h"

namespace plait::data {

std::string SequenceSet::description() const { return synthetic ? "synthetic stand-in: " + source : source; }

void Gather(const SequenceSplit& split, absl::Span<const std::int64_t> indices, absl::Span<float> x,
            absl::Span<std::int64_t> y) {
  const std::size_t sample = split.steps * split.channels;
  PLAIT_CHECK(x.size() == indices.size() * sample)
      << x.size() << " floats for " << indices.size() << " samples";
  PLAIT_CHECK(y.size() == indices.size()) << y.size() << " labels for " << indices.size() << " samples";
  for (std::size_t i = 0; i < indices.size(); ++i) {
    PLAIT_CHECK(indices[i] >= 0 && indices[i] < split.samples()) << indices[i] << " of " << split.samples();
    std::copy_n(split.x.begin() + indices[i] * sample, sample, x.begin() + i * sample);
    y[i] = split.y[indices[i]];
  }
}

SequenceSplit Subsampled(const SequenceSplit& split, double fraction) {
  PLAIT_CHECK(fraction > 0 && fraction <= 1) << fraction;
  const std::int64_t kept = std::max<std::int64_t>(1, static_cast<std::int64_t>(split.samples() * fraction));
  if (kept >= split.samples()) return split;
  std::vector<std::int64_t> indices(kept);
  for (std::int64_t i = 0; i < kept; ++i) indices[i] = i * split.samples() / kept;
  SequenceSplit thin{split.steps, split.channels, {}, {}, {}};
  thin.x.resize(kept * split.steps * split.channels);
  thin.y.resize(kept);
  Gather(split, indices, absl::MakeSpan(thin.x), absl::MakeSpan(thin.y));
  for (const std::int64_t index : indices) thin.subject.push_back(split.subject[index]);
  return thin;
}

}  // namespace plait::data
