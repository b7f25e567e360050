// Saves and loads LibTorch tensors as pieces of a checkpoint.
//
//   pieces.push_back(PieceOfTensor("model", name, weight.sizes(), /*begin=*/0, weight.flatten()));
//
// With tensor parallelism, a flat shard of the local tensor, which consists of boxes of the whole one:
//
//   for (TensorPiece& piece : PiecesOfPlacement("model", name, local.sizes(), placement, begin, shard)) ...
//   PLAIT_RETURN_IF_ERROR(ReadPlacement(checkpoint, "model/" + name, placement, begin, shard));
//
// The values must not change until the save is complete (or AsyncSaver::Start returns): pieces share the tensor's
// memory. Tensors that are on a GPU or not contiguous are copied.
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

// `values`, flattened, are the elements [begin, begin + values.numel()) of a tensor of `shape`.
TensorPiece PieceOfTensor(const std::string& group, const std::string& name, at::IntArrayRef shape,
                          std::int64_t begin, const at::Tensor& values);

// A tensor that is not sharded: only one rank may pass it. The others pass nothing, or the piece with `end = begin`.
TensorPiece WholeTensor(const std::string& group, const std::string& name, const at::Tensor& values);

// The shape of the whole tensor: the local one if `placement` has no boxes.
std::vector<std::int64_t> WholeShape(at::IntArrayRef local_shape, const models::Placement& placement);

// `values`, flattened, are the elements [begin, begin + values.numel()) of the local tensor, whose part of the whole
// one `placement` describes. Of ranks that hold the same values (replicated and partial axes, and the unit's replicate
// axis) only one may pass them. Values beyond the local tensor are a programming error; boxes outside the whole tensor
// fail the save.
std::vector<TensorPiece> PiecesOfPlacement(const std::string& group, const std::string& name,
                                           at::IntArrayRef local_shape, const models::Placement& placement,
                                           std::int64_t begin, const at::Tensor& values);

// Reads the elements [begin, begin + values.numel()) of the whole tensor into `values`, on any device, with any
// strides. INVALID_ARGUMENT if its dtype is not the checkpoint's; else errors as Checkpoint::Read's. Not recorded by
// autograd.
absl::Status ReadTensor(Checkpoint& checkpoint, const std::string& path, std::int64_t begin,
                        const at::Tensor& values);

// The same for elements of the local tensor. INVALID_ARGUMENT also if the checkpoint's tensor does not have
// placement.shape.
absl::Status ReadPlacement(Checkpoint& checkpoint, const std::string& path,
                           const models::Placement& placement, std::int64_t begin, const at::Tensor& values);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_PIECES_OF_TENSOR_H_
