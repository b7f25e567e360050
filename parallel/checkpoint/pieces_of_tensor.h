// LibTorch's tensors as pieces of a checkpoint.
//
//   pieces.push_back(PieceOfTensor("model", name, weight.sizes(), /*begin=*/0, weight.flatten()));
//
// The values must stay as they are until the save is over (or AsyncSaver::Start returns): the piece keeps the
// tensor's memory alive and does not copy it. Tensors on a GPU or with strides are copied here.
#ifndef PLAIT_PARALLEL_CHECKPOINT_PIECES_OF_TENSOR_H_
#define PLAIT_PARALLEL_CHECKPOINT_PIECES_OF_TENSOR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/tensor_piece.h"

namespace plait::parallel {

// float32, float64, bfloat16, float16, int64, int32, uint8, bool; another type is a programming error.
data::DType DTypeOf(const at::Tensor& tensor);

// A tensor of `shape`, of which `values`, flattened, are the elements from `begin` on.
TensorPiece PieceOfTensor(const std::string& group, const std::string& name, at::IntArrayRef shape,
                          std::int64_t begin, const at::Tensor& values);

// The whole tensor, for those that are not sharded: one rank alone may offer it. The others offer nothing, or
// the empty piece `end = begin`.
TensorPiece WholeTensor(const std::string& group, const std::string& name, const at::Tensor& values);

// Elements from `begin` on into `values`, all of it, of whatever device and strides. Of another type than the
// checkpoint's: INVALID_ARGUMENT; else errors as Checkpoint::Read's. Not recorded by autograd.
absl::Status ReadTensor(Checkpoint& checkpoint, const std::string& path, std::int64_t begin,
                        const at::Tensor& values);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_PIECES_OF_TENSOR_H_
