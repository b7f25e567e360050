// The contents of a checkpoint: tensors by name, and the pieces of them that ranks own.
//
//   const TensorSpec weight{"model", "transformer.wte.weight", at::kFloat, {50257, 768}};
//   const TensorPiece shard{weight, /*begin=*/0, /*end=*/19298688, values.data()};
//
// A piece is a flat range of the tensor's elements in row-major order, whatever its shape: shards of flat
// buffers cut tensors anywhere. Where only part of the tensor is local (tensor parallelism), it is a flat
// range of that box:
//
//   const models::Box columns{.begin = {0, 512}, .size = {768, 512}};   // of a (768, 2048) matrix
//   const TensorPiece piece{weight, 0, 768 * 512, values.data(), nullptr, columns};
//
// A rank may own any number of pieces of a tensor, or none. The pieces of all ranks together hold every element
// exactly once: of several replicas only one passes it.
#ifndef PLAIT_PARALLEL_CHECKPOINT_TENSOR_PIECE_H_
#define PLAIT_PARALLEL_CHECKPOINT_TENSOR_PIECE_H_

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/byte_stream.h"
#include "models/placement.h"

namespace plait::parallel {

struct TensorSpec {
  std::string group;  // "model", "optimizer/exp_avg", ...; "plait" is reserved
  std::string name;   // in the state dict: "transformer.wte.weight"; no '/'
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> shape;  // of the whole tensor; empty: a scalar

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// "model/transformer.wte.weight": its name in the files.
std::string PathOf(const TensorSpec& tensor);
std::int64_t ElementsOf(const TensorSpec& tensor);
inline std::int64_t ElementBytes(at::ScalarType type) {
  return static_cast<std::int64_t>(c10::elementSize(type));
}
// Serialization, for messages between ranks.
void WriteSpec(const TensorSpec& tensor, comm::ByteWriter& to);
TensorSpec ReadSpec(comm::ByteReader& from);
// "float32 (50257, 768)"
std::string TypeAndShapeOf(const TensorSpec& tensor);

struct TensorPiece {
  TensorSpec tensor;
  std::int64_t begin = 0,
               end = 0;        // in elements; begin == end: the rank declares the tensor but owns none of it
  const void* data = nullptr;  // end - begin contiguous elements in host memory
  std::shared_ptr<const void> owner = nullptr;  // keeps `data` alive; null: the caller does
  models::Box box = {};  // begin and end count its elements, row-major; without dimensions: the whole tensor

  std::int64_t bytes() const { return (end - begin) * ElementBytes(tensor.dtype); }
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_TENSOR_PIECE_H_
