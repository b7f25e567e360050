#include "parallel/sharding/reductions.h"

namespace plait::parallel {
namespace {

constexpr std::size_t kMostInFlight = 2;

}  // namespace

void Reductions::Begin(bool reduces, bool last) {
  reduces_ = reduces;
  last_ = last;
  started_ = scattered_ = summed_ = 0;
  arrived_.assign(units_.size(), false);
}

void Reductions::Advance() {
  if (!reduces_) return;
  while (started_ < units_.size() && units_[started_]->all_accumulated()) StartNext();
  Move(/*must_scatter=*/0, /*must_sum=*/0);
}

void Reductions::Finish() {
  if (!reduces_) return;
  while (started_ < units_.size()) StartNext();
  Move(units_.size(), units_.size());
}

void Reductions::StartNext() {
  if (bounded_ && started_ >= kMostInFlight) Move(started_ + 1 - kMostInFlight, /*must_sum=*/0);
  units_[started_++]->StartScatter(last_);
}

void Reductions::Move(std::size_t must_scatter, std::size_t must_sum) {
  for (std::size_t u = scattered_; u < started_; ++u) {
    if (!arrived_[u]) arrived_[u] = units_[u]->AdvanceScatter(/*wait=*/u < must_scatter);
  }
  while (scattered_ < started_ && arrived_[scattered_]) {
    if (last_) units_[scattered_]->StartReplicaSum();
    ++scattered_;
  }
  if (last_) MoveSums(must_sum);
}

void Reductions::MoveSums(std::size_t must_sum) {
  for (std::size_t u = summed_; u < scattered_; ++u) {
    if (units_[u]->AdvanceReplicaSum(/*wait=*/u < must_sum) && u == summed_) ++summed_;
  }
}

}  // namespace plait::parallel
