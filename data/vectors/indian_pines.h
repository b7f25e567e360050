// Pixels of a hyperspectral image with their class: Indian Pines (AVIRIS, 145 x 145 pixels, 200 bands, 16 classes).
//
//   PLAIT_ASSIGN_OR_RETURN(const VectorSets sets, OpenIndianPines({.folder = "indian-pines"}));
//
// The folder has the ground truth (Indian_pines_gt.mat: 0 is background, and ignored) and the cube
// (Indian_pines_corrected.mat, or Indian_pines.mat): data/matlab. Without a cube, one is made from the ground truth: a smooth
// spectrum for each class, with brightness and noise by pixel.
#ifndef PLAIT_DATA_VECTORS_INDIAN_PINES_H_
#define PLAIT_DATA_VECTORS_INDIAN_PINES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "data/matlab/matlab.h"
#include "data/vectors/labelled_vectors.h"

namespace plait::data {

struct IndianPinesOptions {
  std::string folder;
  double train_fraction = 0.75;  // of each class, by the seed; between 0 and 1
  std::uint64_t seed = 1;
};

// Bands are normalised by mean and deviation of the training part. Errors of ReadMatlabArray; InvalidArgument, naming the
// files, where cube and ground truth differ in rows or columns, labels are no integers from 0, or a part would be empty.
absl::StatusOr<VectorSets> OpenIndianPines(const IndianPinesOptions& options);

// A cube of `bands` for this ground truth (rows, columns).
MatlabArray MakeCube(const MatlabArray& truth, std::int64_t bands, std::uint64_t seed);

}  // namespace plait::data

#endif  // PLAIT_DATA_VECTORS_INDIAN_PINES_H_
