#include "mgrit/layer_parallel/tree_sum.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "comm/tensor_collectives.h"

namespace plait::mgrit {

TreeSum::TreeSum(std::vector<std::int64_t> bounds, std::vector<int> owners, comm::Communicator communicator)
    : bounds_(std::move(bounds)), owners_(std::move(owners)), communicator_(std::move(communicator)) {}

int TreeSum::PositionOf(std::int64_t leaf) const {
  const auto above = std::upper_bound(bounds_.begin(), bounds_.end(), leaf);
  return static_cast<int>(above - bounds_.begin()) - 1;
}

at::Tensor& TreeSum::Buffer(int depth, const at::Tensor& like) {
  if (buffers_.size() <= static_cast<std::size_t>(depth)) buffers_.resize(depth + 1);
  at::Tensor& buffer = buffers_[depth];
  const bool fits = buffer.defined() && buffer.sizes() == like.sizes() && buffer.dtype() == like.dtype();
  if (!fits || buffer.device() != like.device()) {
    buffer = at::zeros_like(like);
  }
  return buffer;
}

void TreeSum::Compute(const Term& term, at::Tensor& sum) {
  const at::NoGradGuard no_grad;
  const std::int64_t leaves = bounds_.back();
  int height = 0;
  while ((std::int64_t{1} << height) < leaves) ++height;
  buffers_.reserve(height + 1);
  Node(height, 0, 0, term, sum);
  if (communicator_.size() > 1) comm::Broadcast(communicator_, sum, owners_[PositionOf(0)]);
}

// On the rank that owns the node's first leaf, `out` becomes the node's sum; other ranks only contribute to it.
void TreeSum::Node(int height, std::int64_t index, int depth, const Term& term, at::Tensor& out) {
  const std::int64_t first = index << height;
  const std::int64_t last = std::min(first + (std::int64_t{1} << height), bounds_.back()) - 1;
  const int rank = communicator_.rank();
  const int left_owner = owners_[PositionOf(first)];
  const bool whole = PositionOf(first) == PositionOf(last);
  if (whole && left_owner != rank) return;
  if (height == 0) {
    out.zero_();
    term(first, out);
    return;
  }
  Node(height - 1, 2 * index, depth + 1, term, out);
  const std::int64_t middle = (2 * index + 1) << (height - 1);
  if (middle > last) return;
  const int right_owner = owners_[PositionOf(middle)];
  at::Tensor& right = Buffer(depth, out);
  Node(height - 1, 2 * index + 1, depth + 1, term, right);
  if (right_owner != left_owner && rank == right_owner) comm::Send(communicator_, right, left_owner, height);
  if (rank != left_owner) return;
  if (right_owner != left_owner) comm::Receive(communicator_, right, right_owner, height);
  out.add_(right);
}

}  // namespace plait::mgrit
