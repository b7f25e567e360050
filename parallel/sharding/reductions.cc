#include "parallel/sharding/reductions.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "comm/buffer.h"

namespace plait::parallel {

Reductions::Reductions(std::vector<Unit*> units, std::vector<std::int64_t> order,
                       std::vector<comm::Communicator> axes, std::size_t most_in_flight)
    : units_(std::move(units)),
      axes_(std::move(axes)),
      order_(std::move(order)),
      most_in_flight_(most_in_flight) {
  on_cuda_ = !units_.empty() && units_[0]->context().master_options.device().is_cuda();
}

void Reductions::Begin(bool reduces, bool last) {
  reduces_ = reduces;
  last_ = last;
  started_ = scattered_ = summed_ = 0;
  completed_.clear();
  arrived_.assign(units_.size(), false);
}

void Reductions::Advance() {
  if (!reduces_) return;
  while (started_ < units_.size() && At(started_).all_accumulated()) StartNext();
  Move(/*must_scatter=*/0, /*must_sum=*/0);
}

void Reductions::Finish() {
  if (!reduces_) return;
  while (started_ < units_.size()) StartNext();
  Move(units_.size(), units_.size());
  for (Unit* unit : units_) unit->ReduceLate(last_);
  if (!std::exchange(learned_, true)) LearnOrder();
}

void Reductions::LearnOrder() {
  std::vector<std::int64_t> learned;
  const auto add = [&learned](std::int64_t unit) {  // a unit that is used twice completes twice
    if (std::find(learned.begin(), learned.end(), unit) == learned.end()) learned.push_back(unit);
  };
  for (const std::int64_t unit : completed_) add(unit);
  for (const std::int64_t unit : order_) add(unit);  // what autograd did not reach comes last
  for (const comm::Communicator& axis : axes_) {
    if (axis.size() > 1) axis.Broadcast(comm::BufferOf(absl::MakeSpan(learned)), /*root=*/0);
  }
  order_ = std::move(learned);
}

void Reductions::StartNext() {
  At(started_++).StartReduceScatter(last_);
  if (started_ > most_in_flight_) Move(started_ - most_in_flight_, /*must_sum=*/0);
}

void Reductions::Move(std::size_t must_scatter, std::size_t must_sum) {
  for (std::size_t u = scattered_; u < started_; ++u) {
    // NCCL's first call of an algorithm on a communicator may block its rank. If a poll decided when a sum over replicas
    // starts, ranks could start it before and behind a collective of another axis (tp, cp, ep), and wait for one another.
    if (u >= must_scatter && on_cuda_) break;
    if (!arrived_[u]) arrived_[u] = At(u).AdvanceReduceScatter(/*wait=*/u < must_scatter);
    // Before the wait for the next one: NCCL's first sum may block a rank of another replica, which has started it already,
    // before it starts that next reduce-scatter.
    while (scattered_ < started_ && arrived_[scattered_]) {
      if (last_) At(scattered_).StartReplicaSum();
      ++scattered_;
    }
  }
  if (last_) MoveSums(must_sum);
}

void Reductions::MoveSums(std::size_t must_sum) {
  for (std::size_t u = summed_; u < scattered_; ++u) {
    const bool summed = At(u).AdvanceReplicaSum(/*wait=*/u < must_sum);
    if (summed && u == summed_) ++summed_;
    // The second halves of these sums must start in the same order on all ranks.
    if (!summed && At(u).context().reproducible) return;
  }
}

}  // namespace plait::parallel
