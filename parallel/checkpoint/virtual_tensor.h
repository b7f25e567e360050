// The tensor of a checkpoint's index: whole, at its own shape, put together by HDF5 from the pieces in the
// ranks' files (a virtual dataset), so that h5py and other programs read it like any array.
//
// The sources are named relative to the index, so that the folder can be moved. A scalar, which HDF5 cannot
// put together, is an external link to the piece that has it; a tensor of no elements is an empty array.
#ifndef PLAIT_PARALLEL_CHECKPOINT_VIRTUAL_TENSOR_H_
#define PLAIT_PARALLEL_CHECKPOINT_VIRTUAL_TENSOR_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/hdf5/file.h"
#include "parallel/checkpoint/layout.h"

namespace plait::parallel {

// `pieces`: those of the tensor, in order.
absl::Status AddVirtualTensor(data::File& index, const Layout& layout, const TensorSpec& tensor,
                              absl::Span<const LayoutPiece> pieces);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_VIRTUAL_TENSOR_H_
