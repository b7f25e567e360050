// Adds a tensor to a checkpoint's index: whole, at its own shape, as an HDF5 virtual dataset over the pieces in the
// ranks' files, so that h5py and other programs read it like any array.
//
// Source files are named relative to the index, so that the folder can be moved. A scalar, which cannot be a virtual
// dataset, is an external link to the piece that has it; a tensor without elements is an empty array.
#ifndef PLAIT_PARALLEL_CHECKPOINT_VIRTUAL_TENSOR_H_
#define PLAIT_PARALLEL_CHECKPOINT_VIRTUAL_TENSOR_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/hdf5/file.h"
#include "parallel/checkpoint/layout.h"

namespace plait::parallel {

// `pieces`: layout.PiecesOfTensor of the tensor. Errors are HDF5's. Local.
absl::Status AddVirtualTensor(data::File& index, const Layout& layout, const TensorSpec& tensor,
                              absl::Span<const LayoutPiece> pieces);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_VIRTUAL_TENSOR_H_
