// Labelled sequences in memory: the readers return them, training programs take batches from them.
//
//   std::vector<float> x(indices.size() * set.train.steps * set.train.channels);
//   std::vector<std::int64_t> y(indices.size());
//   Gather(set.train, indices, absl::MakeSpan(x), absl::MakeSpan(y));
//   at::Tensor batch = at::from_blob(x.data(), {n, steps, channels});      // (batch, seq, channels)
#ifndef PLAIT_DATA_SEQUENCE_SET_H_
#define PLAIT_DATA_SEQUENCE_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace plait::data {

struct SequenceSplit {
  std::int64_t steps = 0;
  std::int64_t channels = 0;
  std::vector<float> x;               // (samples, steps, channels), row-major
  std::vector<std::int64_t> y;        // (samples), 0 <= label < classes
  std::vector<std::int64_t> subject;  // (samples), 1-based; 0 where the source does not tell

  std::int64_t samples() const { return static_cast<std::int64_t>(y.size()); }
};

struct SequenceSet {
  SequenceSplit train, test;
  std::vector<std::string> class_names;
  std::string source;  // where the data come from, human-readable
  bool synthetic = false;

  // The source, prefixed with "synthetic" if the data are generated. Programs print it wherever they name their
  // data.
  std::string description() const;
};

// Copies the samples at `indices` into x (indices.size(), steps, channels) and y (indices.size()). CHECK-fails
// if a size does not fit or an index is out of range.
void Gather(const SequenceSplit& split, absl::Span<const std::int64_t> indices, absl::Span<float> x,
            absl::Span<std::int64_t> y);

// Returns the indices, in ascending order, of floor(labels.size() * fraction) samples, at least one: evenly spaced over the
// samples sorted by label, so that the share of each label is kept up to one sample. CHECK-fails unless 0 < fraction <= 1.
std::vector<std::int64_t> SubsampledIndices(absl::Span<const std::int64_t> labels, double fraction);

// The samples at those indices.
SequenceSplit Subsampled(const SequenceSplit& split, double fraction);

}  // namespace plait::data

#endif  // PLAIT_DATA_SEQUENCE_SET_H_
