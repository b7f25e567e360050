#include "parallel/optim/time_tikhonov.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <vector>

#include "base/check.h"
#include "comm/tensor_collectives.h"

namespace plait::parallel {
namespace {

constexpr int kTag = 0;

// The shards of the engine's blocks, as a row of vectors.
class Row {
 public:
  explicit Row(DataParallel& dp) : dp_(dp) {
    std::map<const models::ParameterSpec*, int> block_of;
    for (const models::ParameterUnit& unit : dp.units()) {
      for (const models::ParameterSpec& spec : unit.parameters) block_of[&spec] = unit.block;
    }
    for (std::size_t i = 0; i < dp.shards().size(); ++i) {
      const Shard& shard = dp.shards()[i];
      const int block =
          shard.parameters.empty() ? models::ParameterUnit::kRoot : block_of.at(shard.parameters[0]);
      if (block == models::ParameterUnit::kRoot) continue;
      if (static_cast<std::size_t>(block) >= shards_.size())
        shards_.resize(static_cast<std::size_t>(block) + 1);
      shards_[static_cast<std::size_t>(block)].push_back(i);
    }
    for (std::size_t block = 1; block < shards_.size(); ++block) CheckEqual(block);
  }

  std::size_t size() const { return shards_.size(); }
  const absl::Status& status() const { return status_; }

  // The masters of a block, concatenated; zeros if they could not be read, see status().
  at::Tensor Values(std::size_t block) {
    std::vector<at::Tensor> parts;
    for (const std::size_t shard : shards_[block]) {
      parts.push_back(at::zeros({dp_.shards()[shard].layout->shard_count()}, dp_.master_options()));
      status_.Update(dp_.VisitMaster(shard, /*changes=*/false, [&](const at::Tensor& master) {
        parts.back().copy_(master);
        return absl::OkStatus();
      }));
    }
    return at::cat(parts);
  }

  void AddToGradient(std::size_t block, const at::Tensor& values, double factor) {
    std::int64_t offset = 0;
    for (const std::size_t shard : shards_[block]) {
      const at::Tensor& gradient = dp_.shards()[shard].gradient;
      PLAIT_CHECK(gradient.defined()) << "block " << block << " has no gradients: no Backward came before";
      gradient.add_(values.narrow(0, offset, gradient.numel()), factor);
      offset += gradient.numel();
    }
  }

 private:
  void CheckEqual(std::size_t block) const {
    const std::vector<std::size_t>&mine = shards_[block], &first = shards_[0];
    PLAIT_CHECK(mine.size() == first.size()) << "block " << block << " is cut otherwise than block 0";
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const auto& a = dp_.shards()[mine[i]].layout->parameters();
      const auto& b = dp_.shards()[first[i]].layout->parameters();
      PLAIT_CHECK(a.size() == b.size()) << "block " << block << " has other parameters than block 0";
      for (std::size_t p = 0; p < a.size(); ++p) {
        PLAIT_CHECK(a[p].shape == b[p].shape && a[p].offset == b[p].offset)
            << a[p].name << " is not laid out as " << b[p].name;
      }
    }
  }

  DataParallel& dp_;
  std::vector<std::vector<std::size_t>> shards_;  // by block
  absl::Status status_;
};

// The masters of the blocks next to this rank's; undefined if there are none.
struct Edges {
  at::Tensor before, behind;
};

// First from left to right, then back: free of deadlock even if each message waits for the previous one.
Edges Exchange(const RowNeighbours& neighbours, Row& row) {
  Edges edges;
  if (row.size() == 0) return edges;
  const at::Tensor first = row.Values(0), last = row.Values(row.size() - 1);
  std::vector<comm::TensorWork> pending;
  const auto receive = [&](int from, at::Tensor& edge) {
    if (from < 0) return;
    edge = at::empty_like(first);
    pending.push_back(comm::ReceiveAsync(neighbours.axis, edge, from, kTag));
  };
  const auto send = [&](const at::Tensor& mine, int to) {
    if (to >= 0) pending.push_back(comm::SendAsync(neighbours.axis, mine, to, kTag));
  };
  receive(neighbours.before, edges.before);
  send(last, neighbours.behind);
  receive(neighbours.behind, edges.behind);
  send(first, neighbours.before);
  for (comm::TensorWork& work : pending) work.Wait();
  return edges;
}

}  // namespace

absl::Status AddTimeTikhonov(DataParallel& dp, double factor, const RowNeighbours& neighbours) {
  const at::NoGradGuard no_grad;
  dp.SumPartialGradients();
  Row row(dp);
  const Edges edges = Exchange(neighbours, row);
  at::Tensor left = edges.before;
  for (std::size_t block = 0; block < row.size(); ++block) {
    const at::Tensor mine = row.Values(block);
    if (left.defined()) {
      const at::Tensor difference = mine - left;
      if (block > 0) row.AddToGradient(block - 1, difference, -factor);
      row.AddToGradient(block, difference, factor);
    }
    left = mine;
  }
  if (edges.behind.defined()) row.AddToGradient(row.size() - 1, edges.behind - left, -factor);
  return row.status();
}

}  // namespace plait::parallel
