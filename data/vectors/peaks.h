// Points of the plane in five classes: the level sets of MATLAB's function peaks.
//
//   PLAIT_ASSIGN_OR_RETURN(const VectorSets sets, MakePeaks({.train_samples = 5000, .validation_samples = 200}));
//
// The problem of Haber & Ruthotto, "Stable architectures for deep neural networks", Inverse Problems 2017, section 6.1, and
// of Guenther et al., SIMODS 2020: peaks on a grid of 256 x 256 points over [-3, 3]^2, its range cut into five equal
// intervals, which are the classes; equally many points of each class, drawn without replacement.
#ifndef PLAIT_DATA_VECTORS_PEAKS_H_
#define PLAIT_DATA_VECTORS_PEAKS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "data/vectors/labelled_vectors.h"

namespace plait::data {

struct PeaksOptions {
  std::int64_t train_samples = 5000, validation_samples = 200;  // of all classes; multiples of 5
  std::uint64_t seed = 1;
};

// peaks(x, y) = 3 (1-x)^2 exp(-x^2-(y+1)^2) - 10 (x/5-x^3-y^5) exp(-x^2-y^2) - 1/3 exp(-(x+1)^2-y^2).
double Peaks(double x, double y);

// Deterministic for a given seed. InvalidArgument if a class has fewer points than requested, or the numbers are not
// positive multiples of 5.
absl::StatusOr<VectorSets> MakePeaks(const PeaksOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_VECTORS_PEAKS_H_
