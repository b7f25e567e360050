#include "parallel/moe/replicas.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace plait::moe {
namespace {

// Which of this rank's home experts go to which ranks, and which of its replicas come from each.
struct Transfer {
  RowNumbers home_slots;                     // by destination, in the order of its slots
  RowNumbers replicas;                       // by home rank, in the order of this rank's slots
  std::vector<std::int64_t> sent, received;  // by rank
};

// The transfer for the slots that `held` does not have.
Transfer TransferOf(const ExpertPlacement& placement, const ExpertPlacement& held, int rank) {
  const auto slots_of = [&](int r) { return placement.slots(r).subspan(held.slots(r).size()); };
  Transfer transfer;
  for (int other = 0; other < placement.ranks(); ++other) {
    const std::size_t sent = transfer.home_slots.size(), received = transfer.replicas.size();
    for (const int expert : slots_of(other)) {
      if (placement.home_rank(expert) == rank)
        transfer.home_slots.push_back(expert - placement.first_home_expert(rank));
    }
    for (std::size_t i = 0; i < slots_of(rank).size(); ++i) {
      if (placement.home_rank(slots_of(rank)[i]) == other)
        transfer.replicas.push_back(static_cast<std::int64_t>(i));
    }
    transfer.sent.push_back(static_cast<std::int64_t>(transfer.home_slots.size() - sent));
    transfer.received.push_back(static_cast<std::int64_t>(transfer.replicas.size() - received));
  }
  return transfer;
}

ExpertPlacement HomesOf(const ExpertPlacement& placement) {
  return ExpertPlacement(placement.ranks(), placement.experts());
}

at::Tensor Flat(const at::Tensor& experts) { return experts.flatten(1); }

// Some weights of each expert, as bytes: an optimizer step changes some of them, unless the expert had no gradient.
at::Tensor SamplesOf(const ExpertWeights& home) {
  constexpr std::int64_t kSamples = 64;  // of a parameter
  std::vector<at::Tensor> samples;
  ExpertWeights none;
  ForEachTensor(home, none, [&](const at::Tensor& weight, at::Tensor&) {
    const at::Tensor flat = Flat(weight.detach());
    const std::int64_t step = std::max<std::int64_t>(1, flat.size(1) / kSamples);
    samples.push_back(flat.slice(1, 0, flat.size(1), step).to(at::kCPU).contiguous().view(at::kByte));
  });
  return at::cat(samples, 1);
}

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

void ReplicaCache::CheckHomes(const ExpertPlacement& placement, int rank, const ExpertWeights& home) {
  if (home.in.is_meta()) return;
  const at::Tensor now = SamplesOf(home);
  const at::Tensor before = std::exchange(samples_, now);
  if (!before.defined() || before.equal(now)) return;
  const int first = placement.first_home_expert(rank);
  for (int other = 0; other < placement.ranks(); ++other) {
    const absl::Span<const int> slots = placement_->slots(other);
    for (std::size_t slot = placement.home_experts(other); slot < slots.size(); ++slot) {
      if (placement.home_rank(slots[slot]) != rank) continue;
      const int mine = slots[slot] - first;
      PLAIT_CHECK(before[mine].equal(now[mine]))
          << "the replica of expert " << slots[slot] << " in slot " << slot << " of rank " << other
          << " has the weights of version " << version_
          << ", which have changed on their home rank since; expected EndStep after each optimizer step";
    }
  }
}

void ReplicaCache::CheckVersion(const ExpertPlacement& placement, int rank, std::int64_t version) const {
  const int slot = placement.home_experts(rank);
  PLAIT_CHECK(version == version_ || placement.replicas(rank) == 0)
      << "the replica of expert " << placement.slots(rank)[slot] << " in slot " << slot << " of rank " << rank
      << " has the weights of version " << version << ", now is version " << version_
      << "; expected the backward pass of each micro-batch before the optimizer step";
}

void ReplicaCache::StartFetch(const comm::Communicator& comm, const ExpertPlacement& placement,
                              const ExpertWeights& home) {
  uses_replicas_ = HasReplicas(placement);
  if (!uses_replicas_) return;
  CheckHomes(placement, comm.rank(), home);
  const ExpertPlacement held = placement_.value_or(HomesOf(placement));
  bool grows = false;
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    const absl::Span<const int> before = held.slots(rank), now = placement.slots(rank);
    PLAIT_CHECK(before == now.subspan(0, before.size()))
        << "rank " << rank << " has " << before.size() << " slots in this step, which the placement changes";
    grows = grows || now.size() > before.size();
  }
  if (!grows) return;
  placement_ = placement;
  const Transfer transfer = TransferOf(placement, held, comm.rank());
  arrived_.resize(transfer.replicas.size());
  for (std::size_t i = 0; i < arrived_.size(); ++i)
    arrived_[transfer.replicas[i]] = static_cast<std::int64_t>(i);
  ForEachTensor(home, fetched_, [&](const at::Tensor& weight, at::Tensor& replica) {
    std::vector<std::int64_t> shape = weight.sizes().vec();
    shape[0] = placement.replicas(comm.rank()) - held.replicas(comm.rank());
    replica = at::empty(shape, weight.options());
    at::Tensor flat = Flat(replica);
    work_.push_back(comm::AllToAllVAsync(comm, GatherRows(Flat(weight.detach()), transfer.home_slots),
                                         transfer.sent, flat, transfer.received));
  });
}

ExpertWeights ReplicaCache::WaitForFetch() {
  for (comm::TensorWork& work : work_) work.Wait();
  work_.clear();
  ForEachTensor(fetched_, replicas_, [this](const at::Tensor& fetched, at::Tensor& all) {
    const at::Tensor in_slots = GatherRows(Flat(fetched), arrived_).view(fetched.sizes());
    // A new tensor: graphs of earlier micro-batches keep theirs.
    all = all.defined() ? at::cat({all, in_slots}) : in_slots;
  });
  fetched_ = {};
  return uses_replicas_ ? replicas_ : ExpertWeights();
}

void ReplicaCache::EndStep() {
  ++version_;
  placement_.reset();
  replicas_ = {};
  samples_ = at::Tensor();
}

void ReduceToHome(const comm::Communicator& comm, const ExpertPlacement& placement,
                  const ExpertWeights& of_replicas, ExpertWeights& of_home) {
  if (!HasReplicas(placement)) return;
  const Transfer transfer = TransferOf(placement, HomesOf(placement), comm.rank());
  ForEachTensor(of_replicas, of_home, [&](const at::Tensor& replica, at::Tensor& home) {
    at::Tensor sums = Flat(home);
    at::Tensor received =
        at::empty({static_cast<std::int64_t>(transfer.home_slots.size()), sums.size(1)}, sums.options());
    comm::AllToAllV(comm, GatherRows(Flat(replica), transfer.replicas), transfer.received, received,
                    transfer.sent);
    for (std::size_t i = 0; i < transfer.home_slots.size(); ++i) {
      sums.select(0, transfer.home_slots[i]).add_(received.select(0, static_cast<std::int64_t>(i)));
    }
  });
}

}  // namespace plait::moe
