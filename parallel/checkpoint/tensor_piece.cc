#include "parallel/checkpoint/tensor_piece.h"

#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "parallel/checkpoint/stored_type.h"

namespace plait::parallel {

std::string PathOf(const TensorSpec& tensor) { return absl::StrCat(tensor.group, "/", tensor.name); }

std::int64_t ElementsOf(const TensorSpec& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<>());
}

void WriteSpec(const TensorSpec& tensor, comm::ByteWriter& to) {
  to.WriteText(tensor.group);
  to.WriteText(tensor.name);
  to.Write(tensor.dtype);
  to.WriteNumbers(tensor.shape);
}

TensorSpec ReadSpec(comm::ByteReader& from) {
  TensorSpec tensor;
  tensor.group = from.ReadText();
  tensor.name = from.ReadText();
  tensor.dtype = from.Read<at::ScalarType>();
  tensor.shape = from.ReadNumbers<std::int64_t>();
  return tensor;
}

std::string TypeAndShapeOf(const TensorSpec& tensor) {
  return absl::StrCat(TypeName(tensor.dtype), " (", absl::StrJoin(tensor.shape, ", "), ")");
}

}  // namespace plait::parallel
