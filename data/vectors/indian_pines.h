// Labelled pixels of a hyperspectral image: Indian Pines (AVIRIS, 145 x 145 pixels, 200 bands, 16 classes).
//
//   PLAIT_ASSIGN_OR_RETURN(const VectorSets sets, OpenIndianPines({.folder = "indian-pines"}));
//
// The folder has the ground truth (Indian_pines_gt.mat; 0 is background, which is ignored) and the cube
// (Indian_pines_corrected.mat, else Indian_pines.mat). Without a cube, a synthetic one is generated from the ground
// truth: a smooth spectrum per class, with brightness and noise per pixel.
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
  double train_fraction = 0.75;  // of each class, drawn by the seed; between 0 and 1
  std::uint64_t seed = 1;
};

// Bands are normalized by mean and standard deviation of the training part. Errors of ReadMatlabArray;
// InvalidArgument, naming the files, if cube and ground truth differ in rows or columns, labels are not integers
// from 0 to 255, or a part would be empty.
absl::StatusOr<VectorSets> OpenIndianPines(const IndianPinesOptions& options);

// Generates a cube (rows, columns, bands), column-major, for a ground truth (rows, columns).
MatlabArray MakeCube(const MatlabArray& truth, std::int64_t bands, std::uint64_t seed);

}  // namespace plait::data

#endif  // PLAIT_DATA_VECTORS_INDIAN_PINES_H_
