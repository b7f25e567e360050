#include "parallel/sharding/leaf_sum.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "base/check.h"

namespace plait::parallel {
namespace {

// The sum of two terms has only one order.
bool HasOneOrder(const comm::Communicator& axis) { return axis.size() <= 2; }

// Adds the rows in the order of the tree; the sum is in the first one.
void AddRows(const at::Tensor& rows) {
  const std::int64_t count = rows.size(0);
  for (std::int64_t width = 1; width < count; width *= 2) {
    for (std::int64_t i = 0; i + width < count; i += 2 * width) rows[i].add_(rows[i + width]);
  }
}

}  // namespace

void LeafSum::Add(int leaf, FlatBuffer gradient) {
  const at::NoGradGuard no_grad;
  int height = 0, index = leaf;
  for (;; ++height, index /= 2) {
    const auto sibling = nodes_.find({height, index ^ 1});
    if (sibling == nodes_.end()) break;
    gradient.tensor().add_(sibling->second.tensor());
    sibling->second.Release();
    nodes_.erase(sibling);
  }
  const bool is_new = nodes_.try_emplace({height, index}, std::move(gradient)).second;
  PLAIT_CHECK(is_new) << "leaf " << leaf << " came twice: each micro-batch of a step has a leaf of its own";
}

FlatBuffer LeafSum::Take() {
  const at::NoGradGuard no_grad;
  FlatBuffer sum = std::move(nodes_.begin()->second);
  nodes_.erase(nodes_.begin());
  for (auto& [place, node] : nodes_) {
    sum.tensor().add_(node.tensor());
    node.Release();
  }
  nodes_.clear();
  return sum;
}

void AxisSum::Exchange(const comm::Communicator& axis, const at::Tensor& whole) {
  terms_ = at::empty({axis.size(), whole.numel() / axis.size()}, whole.options());
  at::Tensor received = terms_.view({-1});
  work_ = comm::AllToAllAsync(axis, whole, received);
}

AxisSum AxisSum::ReduceScatter(const comm::Communicator& axis, const at::Tensor& whole,
                               const at::Tensor& shard, bool over_tree, int tag) {
  AxisSum sum;
  sum.shard_ = shard;
  if (over_tree && !HasOneOrder(axis)) {
    sum.Exchange(axis, whole);
  } else {
    sum.work_ = comm::ReduceScatterAsync(axis, whole, sum.shard_, comm::ReduceOp::kSum, tag);
  }
  return sum;
}

AxisSum AxisSum::AllReduce(const comm::Communicator& axis, const comm::Communicator& gather,
                           const at::Tensor& values, bool over_tree, int tag) {
  const at::NoGradGuard no_grad;
  AxisSum sum;
  sum.values_ = sum.padded_ = values;
  if (!over_tree || HasOneOrder(axis)) {
    sum.work_ = comm::AllReduceAsync(axis, sum.values_, comm::ReduceOp::kSum, tag);
    return sum;
  }
  const std::int64_t ranks = axis.size(), part = (values.numel() + ranks - 1) / ranks;
  if (part * ranks != values.numel()) {
    sum.padded_ = at::zeros({part * ranks}, values.options());
    sum.padded_.narrow(0, 0, values.numel()).copy_(values);
  }
  sum.shard_ = sum.padded_.narrow(0, axis.rank() * part, part);
  sum.gather_ = gather;
  sum.tag_ = tag;
  sum.Exchange(axis, sum.padded_);
  return sum;
}

// Called when the terms have arrived.
void AxisSum::AddUp() {
  const at::NoGradGuard no_grad;
  AddRows(terms_);
  shard_.copy_(terms_[0]);
  terms_.reset();
  work_ = comm::TensorWork();
  if (gather_.has_value()) work_ = comm::AllGatherAsync(*gather_, shard_, padded_, tag_);
}

bool AxisSum::Test() {
  if (!work_.Test()) return false;
  if (terms_.defined()) {
    AddUp();
    if (!work_.Test()) return false;
  }
  if (padded_.defined() && !padded_.is_same(values_)) {
    values_.copy_(padded_.narrow(0, 0, values_.numel()));
    padded_ = values_;
  }
  return true;
}

void AxisSum::Wait() {
  work_.Wait();
  if (terms_.defined()) {
    AddUp();
    work_.Wait();
  }
  static_cast<void>(Test());
}

}  // namespace plait::parallel
