#include "tests/parity/faults.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

namespace plait::parity {
namespace {

double SumOfSquares(const at::Tensor& gradient) {
  const double norm = gradient.to(at::kDouble).norm().item<double>();
  return norm * norm;
}

// The elements of this rank's shard that belong to no parameter become `value`.
void FillPadding(const parallel::Shard& shard, double value) {
  std::int64_t end = 0;
  const auto fill_to = [&](std::int64_t begin) { shard.gradient.narrow(0, end, begin - end).fill_(value); };
  for (const parallel::FlatSlice& slice : shard.layout->Slices(shard.rank)) {
    fill_to(slice.shard_offset);
    end = slice.shard_offset + slice.end - slice.begin;
  }
  fill_to(shard.layout->shard_count());
}

}  // namespace

std::string NameOf(Fault fault) {
  constexpr const char* kNames[] = {"none",
                                    "dropped all-reduce",
                                    "norm counted twice",
                                    "own norm only",
                                    "filled padding",
                                    "wrong normalizer",
                                    "stale shard",
                                    "stale gradients",
                                    "added gradients",
                                    "shifted shards",
                                    "exchanged reductions",
                                    "unreached gradients",
                                    "decay everywhere"};
  return kNames[static_cast<int>(fault)];
}

bool CanHave(Fault fault, int replicas, int shards) {
  if (fault == Fault::kDroppedAllReduce) return replicas > 1;
  return shards > 1 || (fault != Fault::kOwnNorm && fault != Fault::kStaleShard);
}

FaultInjector::FaultInjector(Fault fault, int at_step, const comm::Communicator& world)
    : fault_(fault), at_step_(at_step), world_(world) {}

std::vector<models::ParameterUnit> FaultInjector::UnitsOf(std::vector<models::ParameterUnit> units) const {
  for (models::ParameterUnit& unit : units) {
    if (fault_ == Fault::kDroppedAllReduce) unit.replicate_axis = "none";
    for (models::ParameterSpec& p : unit.parameters) p.decays |= fault_ == Fault::kDecayEverywhere;
  }
  return units;
}

double FaultInjector::NormalizerOf(std::size_t samples, int micro_batches, double whole) const {
  if (fault_ != Fault::kWrongNormalizer) return whole;
  return static_cast<double>(samples) * world_.size() * micro_batches;
}

void FaultInjector::SpoilGradients(const parallel::DataParallel& dp, int step) {
  const std::vector<parallel::Shard>& shards = dp.shards();
  std::vector<at::Tensor> now;
  for (const parallel::Shard& shard : shards) now.push_back(shard.gradient.clone());
  const bool here = step == at_step_;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const at::Tensor& gradient = shards[i].gradient;
    if (fault_ == Fault::kStaleGradients && here) gradient.copy_(gradients_[i]);
    if (fault_ == Fault::kAddedGradients && here) gradient.add_(gradients_[i]);
    if (fault_ == Fault::kShiftedShards) gradient.copy_(now[i].roll(1));
    if (fault_ == Fault::kFilledPadding) FillPadding(shards[i], 0.1);
  }
  if (fault_ == Fault::kExchangedReductions) {
    const std::size_t last = shards.size() - 1;
    const std::int64_t count = std::min(now[last].numel(), now[last - 1].numel());
    shards[last - 1].gradient.narrow(0, 0, count).copy_(now[last].narrow(0, 0, count));
    shards[last].gradient.narrow(0, 0, count).copy_(now[last - 1].narrow(0, 0, count));
  }
  if (fault_ == Fault::kUnreachedGradients) shards.back().gradient.zero_();
  gradients_ = std::move(now);
}

double FaultInjector::ClipNormOf(parallel::DataParallel& dp, double clip_norm) const {
  if (fault_ == Fault::kNormCountedTwice) return clip_norm / std::sqrt(2.0);
  if (fault_ != Fault::kOwnNorm) return clip_norm;
  double own = 0;
  for (const parallel::Shard& shard : dp.shards()) own += SumOfSquares(shard.gradient);
  return clip_norm * dp.GradientNorm() / std::sqrt(own);
}

void FaultInjector::NoteMasters(const parallel::DataParallel& dp, int step) {
  if (fault_ == Fault::kStaleShard && step == at_step_) master_ = dp.shards().back().master.clone();
}

void FaultInjector::SpoilMasters(parallel::DataParallel& dp, int step) const {
  if (fault_ != Fault::kStaleShard || step != at_step_) return;
  dp.WaitForParameters();
  if (world_.rank() == 0) dp.shards().back().master.copy_(master_);
  dp.AllGatherParameters();
}

}  // namespace plait::parity
