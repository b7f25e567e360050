#include "parallel/moe/replicas.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "parallel/moe/rows.h"

namespace plait::moe {
namespace {

// Which of this rank's home experts go to which ranks, and how many replicas come from each.
struct Transfer {
  RowNumbers home_slots;                     // by destination, in the order of its slots
  std::vector<std::int64_t> sent, received;  // by rank
};

Transfer TransferOf(const ExpertPlacement& placement, int rank) {
  Transfer transfer;
  for (int other = 0; other < placement.ranks(); ++other) {
    const auto from = [&](int holder, int home, RowNumbers* slots) {
      std::int64_t count = 0;
      for (const int expert : placement.slots(holder).subspan(placement.home_experts(holder))) {
        if (placement.home_rank(expert) != home) continue;
        ++count;
        if (slots != nullptr) slots->push_back(expert - placement.first_home_expert(home));
      }
      return count;
    };
    transfer.sent.push_back(from(other, rank, &transfer.home_slots));
    transfer.received.push_back(from(rank, other, nullptr));
  }
  return transfer;
}

at::Tensor Flat(const at::Tensor& experts) { return experts.flatten(1); }

}  // namespace

void ForEachTensor(const ExpertWeights& a, ExpertWeights& b,
                   const std::function<void(const at::Tensor& of_a, at::Tensor& of_b)>& visit) {
  for (const auto member : {&ExpertWeights::in, &ExpertWeights::in_bias, &ExpertWeights::gate,
                            &ExpertWeights::gate_bias, &ExpertWeights::out, &ExpertWeights::out_bias}) {
    if ((a.*member).defined()) visit(a.*member, b.*member);
  }
}

bool HasReplicas(const ExpertPlacement& placement) {
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    if (placement.replicas(rank) > 0) return true;
  }
  return false;
}

ReplicaFetch::ReplicaFetch(const comm::Communicator& comm, const ExpertPlacement& placement,
                           const ExpertWeights& home) {
  if (!HasReplicas(placement)) return;
  const Transfer transfer = TransferOf(placement, comm.rank());
  ForEachTensor(home, replicas_, [&](const at::Tensor& weight, at::Tensor& replica) {
    std::vector<std::int64_t> shape = weight.sizes().vec();
    shape[0] = placement.replicas(comm.rank());
    replica = at::empty(shape, weight.options());
    at::Tensor flat = Flat(replica);
    work_.push_back(comm::AllToAllVAsync(comm, GatherRows(Flat(weight.detach()), transfer.home_slots),
                                         transfer.sent, flat, transfer.received));
  });
}

ExpertWeights ReplicaFetch::Wait() {
  for (comm::TensorWork& work : work_) work.Wait();
  return std::exchange(replicas_, {});
}

void ReduceToHome(const comm::Communicator& comm, const ExpertPlacement& placement,
                  const ExpertWeights& of_replicas, ExpertWeights& of_home) {
  if (!HasReplicas(placement)) return;
  const Transfer transfer = TransferOf(placement, comm.rank());
  ForEachTensor(of_replicas, of_home, [&](const at::Tensor& replica, at::Tensor& home) {
    at::Tensor sums = Flat(home);
    at::Tensor received =
        at::empty({static_cast<std::int64_t>(transfer.home_slots.size()), sums.size(1)}, sums.options());
    comm::AllToAllV(comm, Flat(replica), transfer.received, received, transfer.sent);
    for (std::size_t i = 0; i < transfer.home_slots.size(); ++i) {
      sums.select(0, transfer.home_slots[i]).add_(received.select(0, static_cast<std::int64_t>(i)));
    }
  });
}

}  // namespace plait::moe
