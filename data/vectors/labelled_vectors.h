// Labelled vectors in memory, as a training and a validation part.
#ifndef PLAIT_DATA_VECTORS_LABELLED_VECTORS_H_
#define PLAIT_DATA_VECTORS_LABELLED_VECTORS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace plait::data {

struct LabelledVectors {
  std::int64_t width = 0;
  std::vector<float> values;         // (samples, width), row-major
  std::vector<std::int64_t> labels;  // (samples), 0 <= label < classes

  std::int64_t samples() const { return static_cast<std::int64_t>(labels.size()); }
};

struct VectorSets {
  LabelledVectors train, validation;  // of the same width
  std::int64_t classes = 0;
  std::string description;  // human-readable; begins with "synthetic" if the vectors are generated
};

}  // namespace plait::data

#endif  // PLAIT_DATA_VECTORS_LABELLED_VECTORS_H_
