#include "data/sequence_set.h"

#include <algorithm>
#include <numeric>

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

std::vector<std::int64_t> SubsampledIndices(absl::Span<const std::int64_t> labels, double fraction) {
  PLAIT_CHECK(fraction > 0 && fraction <= 1) << fraction;
  const auto all = static_cast<std::int64_t>(labels.size());
  const auto kept = static_cast<std::int64_t>(static_cast<double>(all) * fraction);
  std::vector<std::int64_t> by_label(labels.size());
  std::iota(by_label.begin(), by_label.end(), 0);
  std::stable_sort(by_label.begin(), by_label.end(),
                   [&](std::int64_t a, std::int64_t b) { return labels[a] < labels[b]; });
  std::vector<std::int64_t> indices(std::min(std::max<std::int64_t>(1, kept), all));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = by_label[i * labels.size() / indices.size()];
  std::sort(indices.begin(), indices.end());
  return indices;
}

SequenceSplit Subsampled(const SequenceSplit& split, double fraction) {
  const std::vector<std::int64_t> indices = SubsampledIndices(split.y, fraction);
  const auto kept = static_cast<std::int64_t>(indices.size());
  if (kept >= split.samples()) return split;
  SequenceSplit thin{split.steps, split.channels, {}, {}, {}};
  thin.x.resize(kept * split.steps * split.channels);
  thin.y.resize(kept);
  Gather(split, indices, absl::MakeSpan(thin.x), absl::MakeSpan(thin.y));
  for (const std::int64_t index : indices) thin.subject.push_back(split.subject[index]);
  return thin;
}

}  // namespace plait::data
