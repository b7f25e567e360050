#include "parallel/checkpoint/pieces_of_tensor.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "parallel/checkpoint/box_range.h"

namespace plait::parallel {
namespace {

// INVALID_ARGUMENT if the checkpoint's tensor has another dtype, or another shape than the placement's.
absl::Status CheckTensor(const Checkpoint& checkpoint, const std::string& path, at::ScalarType dtype,
                         const models::Placement& placement) {
  const TensorSpec* there = checkpoint.Find(path);
  if (there == nullptr) return absl::OkStatus();  // Read says so
  TensorSpec here = *there;
  here.dtype = dtype;
  if (!placement.boxes.empty()) here.shape = placement.shape;
  if (here == *there) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(checkpoint.folder(), ": ", path, " is ",
                                                 TypeAndShapeOf(*there), " there and ", TypeAndShapeOf(here),
                                                 " here"));
}

// Elements [begin, end) of the local tensor, as ranges of its boxes; without boxes, one range of the whole tensor.
std::vector<BoxRange> LocalRanges(const models::Placement& placement, std::int64_t begin, std::int64_t end) {
  if (placement.boxes.empty()) return {{{}, begin, end}};
  std::vector<BoxRange> ranges;
  std::int64_t first = 0;  // of the box, in the local tensor
  for (const models::Box& box : placement.boxes) {
    const std::int64_t elements = ElementsOf(box.size);
    const std::int64_t from = std::max(begin - first, std::int64_t{0}),
                       until = std::min(end - first, elements);
    if (from < until) ranges.push_back({box, from, until});
    first += elements;
  }
  PLAIT_CHECK(0 <= begin && end <= first)
      << "elements [" << begin << ", " << end << ") of a local tensor of " << first;
  return ranges;
}

}  // namespace

TensorPiece PieceOfTensor(const std::string& group, const std::string& name, at::IntArrayRef shape,
                          std::int64_t begin, const at::Tensor& values) {
  const auto host = std::make_shared<const at::Tensor>(values.detach().cpu().contiguous());
  return {{group, name, values.scalar_type(), shape.vec()},
          begin,
          begin + values.numel(),
          host->const_data_ptr(),
          host};
}

TensorPiece WholeTensor(const std::string& group, const std::string& name, const at::Tensor& values) {
  return PieceOfTensor(group, name, values.sizes(), 0, values);
}

std::vector<std::int64_t> WholeShape(at::IntArrayRef local_shape, const models::Placement& placement) {
  return placement.boxes.empty() ? local_shape.vec() : placement.shape;
}

std::vector<TensorPiece> PiecesOfPlacement(const std::string& group, const std::string& name,
                                           at::IntArrayRef local_shape, const models::Placement& placement,
                                           std::int64_t begin, const at::Tensor& values) {
  TensorPiece piece = PieceOfTensor(group, name, WholeShape(local_shape, placement), 0, values);
  piece.end = 0;
  std::vector<BoxRange> ranges = LocalRanges(placement, begin, begin + values.numel());
  if (ranges.empty()) return {piece};  // declares the tensor
  std::vector<TensorPiece> pieces;
  for (BoxRange& range : ranges) {
    piece.begin = range.begin;
    piece.end = range.end;
    piece.box = std::move(range.box);
    pieces.push_back(piece);
    piece.data = static_cast<const std::byte*>(piece.data) + piece.bytes();
  }
  return pieces;
}

absl::Status ReadTensor(Checkpoint& checkpoint, const std::string& path, std::int64_t begin,
                        const at::Tensor& values) {
  return ReadPlacement(checkpoint, path, {}, begin, values);
}

absl::Status ReadPlacement(Checkpoint& checkpoint, const std::string& path,
                           const models::Placement& placement, std::int64_t begin, const at::Tensor& values) {
  PLAIT_RETURN_IF_ERROR(CheckTensor(checkpoint, path, values.scalar_type(), placement));
  const bool in_place = values.is_contiguous() && values.device().is_cpu();
  const at::Tensor host = in_place ? values : at::empty(values.sizes(), values.options().device(at::kCPU));
  auto* to = static_cast<std::byte*>(host.mutable_data_ptr());
  for (const BoxRange& range : LocalRanges(placement, begin, begin + values.numel())) {
    const std::size_t bytes = static_cast<std::size_t>(range.end - range.begin) * host.element_size();
    PLAIT_RETURN_IF_ERROR(
        checkpoint.Read(path, range.begin, range.end, absl::MakeSpan(to, bytes), range.box));
    to += bytes;
  }
  const c10::NoGradGuard no_grad;
  if (!in_place) values.detach().copy_(host);
  return absl::OkStatus();
}

}  // namespace plait::parallel
