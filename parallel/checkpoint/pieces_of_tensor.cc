#include "parallel/checkpoint/pieces_of_tensor.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

absl::Status CheckType(const Checkpoint& checkpoint, const std::string& path, data::DType dtype) {
  for (const TensorSpec& tensor : checkpoint.tensors()) {
    if (PathOf(tensor) != path || tensor.dtype == dtype) continue;
    return absl::InvalidArgumentError(absl::StrCat(checkpoint.folder(), ": ", path, " is ",
                                                   data::NameOf(tensor.dtype), " there and ",
                                                   data::NameOf(dtype), " here"));
  }
  return absl::OkStatus();
}

}  // namespace

data::DType DTypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return data::DType::kFloat32;
    case at::kDouble:
      return data::DType::kFloat64;
    case at::kBFloat16:
      return data::DType::kBFloat16;
    case at::kHalf:
      return data::DType::kFloat16;
    case at::kLong:
      return data::DType::kInt64;
    case at::kInt:
      return data::DType::kInt32;
    case at::kByte:
      return data::DType::kUint8;
    case at::kBool:
      return data::DType::kBool;
    default:
      PLAIT_CHECK(false) << "checkpoints do not hold tensors of " << c10::toString(tensor.scalar_type());
      return data::DType::kUint8;
  }
}

TensorPiece PieceOfTensor(const std::string& group, const std::string& name, at::IntArrayRef shape,
                          std::int64_t begin, const at::Tensor& values) {
  const auto host = std::make_shared<const at::Tensor>(values.detach().cpu().contiguous());
  return {{group, name, DTypeOf(values), shape.vec()},
          begin,
          begin + values.numel(),
          host->const_data_ptr(),
          host};
}

TensorPiece WholeTensor(const std::string& group, const std::string& name, const at::Tensor& values) {
  return PieceOfTensor(group, name, values.sizes(), 0, values);
}

absl::Status ReadTensor(Checkpoint& checkpoint, const std::string& path, std::int64_t begin,
                        const at::Tensor& values) {
  PLAIT_RETURN_IF_ERROR(CheckType(checkpoint, path, DTypeOf(values)));
  const bool in_place = values.is_contiguous() && values.device().is_cpu();
  const at::Tensor host = in_place ? values : at::empty(values.sizes(), values.options().device(at::kCPU));
  const auto bytes = static_cast<std::size_t>(host.numel()) * host.element_size();
  const absl::Span<std::byte> to(static_cast<std::byte*>(host.mutable_data_ptr()), bytes);
  PLAIT_RETURN_IF_ERROR(checkpoint.Read(path, begin, begin + values.numel(), to));
  const c10::NoGradGuard no_grad;
  if (!in_place) values.detach().copy_(host);
  return absl::OkStatus();
}

}  // namespace plait::parallel
