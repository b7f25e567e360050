// Labelled sequences in memory: what the readers make and what a training program takes its batches from.
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
  std::string source;  // where the numbers come from, for people
  bool synthetic = false;

  // The source; begins with "synthetic" where the data are made up. Belongs into every line that names the
  // data.
  std::string description() const;
};

// Copies the samples named by `indices` into x (indices.size(), steps, channels) and y (indices.size()).
// Sizes must fit and indices be valid: a programming error otherwise.
void Gather(const SequenceSplit& split, absl::Span<const std::int64_t> indices, absl::Span<float> x,
            absl::Span<std::int64_t> y);

// floor(samples * fraction) samples, at least one, evenly spaced over the split, so that every subject and
// label keeps its share; 0 < fraction <= 1.
SequenceSplit Subsampled(const SequenceSplit& split, double fraction);

}  // namespace plait::data

#endif  // PLAIT_DATA_SEQUENCE_SET_H_
