// LibTorch's tensors as pieces of a checkpoint.
//
//   pieces.push_back(PieceOfTensor("model", name, weight.sizes(), /*begin=*/0, weight.flatten()));
//
// With tensor parallelism, a flat shard of the local tensor, which is made of boxes of the whole one:
//
//   for (TensorPiece& piece : PiecesOfPlacement("model", name, local.sizes(), placement, begin, shard)) ...
//   PLAIT_RETURN_IF_ERROR(ReadPlacement(checkpoint, "model/" + name, placement, begin, shard));
//
// The values must not change until the save is over (or AsyncSaver::Start returns): the piece shares the
// tensor's memory. Tensors on a GPU or with strides are copied here.
#ifndef PLAIT_PARALLEL_CHECKPOINT_PIECES_OF_TENSOR_H_
#define PLAIT_PARALLEL_CHECKPOINT_PIECES_OF_TENSOR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/placement.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/tensor_piece.h"

namespace plait::parallel {

// A tensor of `shape`, of which `values`, flattened, are the elements from `begin` on.
TensorPiece PieceOfTensor(const std::string& group, const std::string& name, at::IntArrayRef shape,
                          std::int64_t begin, const at::Tensor& values);

// The whole tensor, for those that are not sharded: only one rank may offer it. The others offer nothing, or
// the empty piece `end = begin`.
TensorPiece WholeTensor(const std::string& group, const std::string& name, const at::Tensor& values);

// The shape of the whole tensor: the local one where `placement` has no boxes.
std::vector<std::int64_t> WholeShape(at::IntArrayRef local_shape, const models::Placement& placement);

// A tensor of which `placement` says what is local: `values`, flattened, are the elements of the local tensor
// from `begin` on. Of ranks that hold the same values (replicated and partial axes, and the unit's replicate
// axis) only one may offer them. Values beyond the local tensor are a programming error; boxes outside the
// whole tensor are an error of the save.
std::vector<TensorPiece> PiecesOfPlacement(const std::string& group, const std::string& name,
                                           at::IntArrayRef local_shape, const models::Placement& placement,
                                           std::int64_t begin, const at::Tensor& values);

// Fills `values`, of any device and strides, with the elements from `begin` on. INVALID_ARGUMENT if the type
// is not the checkpoint's; else errors as Checkpoint::Read's. Not recorded by autograd.
absl::Status ReadTensor(Checkpoint& checkpoint, const std::string& path, std::int64_t begin,
                        const at::Tensor& values);

// The same for elements of the local tensor, from `begin` on. INVALID_ARGUMENT also if the checkpoint's
// tensor is not of placement.shape.
absl::Status ReadPlacement(Checkpoint& checkpoint, const std::string& path,
                           const models::Placement& placement, std::int64_t begin, const at::Tensor& values);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_PIECES_OF_TENSOR_H_
