#include "parallel/optim/sharded_optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "comm/tensor_collectives.h"
#include "parallel/optim/muon.h"

namespace plait::parallel {
namespace {

constexpr bool kAmsgrad = false;
constexpr bool kMaximize = false;
constexpr bool kNesterov = false;
constexpr double kDampening = 0;
// As torch.nn.utils.clip_grad_norm_.
constexpr double kClipEpsilon = 1e-6;

std::vector<std::string> MomentNames(const ShardedOptimizerOptions& options) {
  if (options.kind != OptimizerKind::kSgd) return {"exp_avg", "exp_avg_sq"};
  return options.momentum == 0 ? std::vector<std::string>() : std::vector<std::string>{"momentum"};
}

// A matrix, or a stack of one for each expert.
bool IsOfMuon(const FlatParameter& parameter) {
  return parameter.decays && (parameter.shape.size() == 2 || parameter.shape.size() == 3);
}

bool HasMatrices(const FlatLayout& layout) {
  return std::any_of(layout.parameters().begin(), layout.parameters().end(), IsOfMuon);
}

}  // namespace

// The arguments of one call of a fused kernel.
struct ShardedOptimizer::Group {
  std::vector<at::Tensor> values, gradients;
  std::vector<std::vector<at::Tensor>> moments;  // by kind
};

ShardedOptimizer::ShardedOptimizer(DataParallel& dp, const ShardedOptimizerOptions& options)
    : ShardedOptimizer(dp, options, nullptr) {
  const auto kinds = static_cast<std::int64_t>(names_.size());
  for (const Shard& shard : dp.shards()) {
    states_.push_back(at::zeros({kinds * shard.layout->shard_count()}, dp.master_options()));
  }
}

ShardedOptimizer::ShardedOptimizer(DataParallel& dp, const ShardedOptimizerOptions& options,
                                   std::unique_ptr<StateStore> store)
    : dp_(dp), options_(options), names_(MomentNames(options)), store_(std::move(store)) {
  PLAIT_CHECK(options.kind != OptimizerKind::kMuon || dp.masters_resident())
      << "Muon with masters out of memory: call ShardedOptimizer::Create, which returns an error";
}

absl::StatusOr<std::unique_ptr<ShardedOptimizer>> ShardedOptimizer::Create(
    DataParallel& dp, const ShardedOptimizerOptions& options, const StateStoreOptions& place) {
  if (options.kind == OptimizerKind::kMuon &&
      (place.target != OffloadTarget::kMemory || !dp.masters_resident())) {
    return absl::UnimplementedError("Muon with optimizer state or masters out of memory");
  }
  if (place.target == OffloadTarget::kMemory) return std::make_unique<ShardedOptimizer>(dp, options);
  const auto kinds = static_cast<std::int64_t>(MomentNames(options).size());
  std::vector<StateSlot> slots;
  for (const Shard& shard : dp.shards()) {
    slots.push_back({.name = shard.layout->parameters().empty() ? "" : shard.layout->parameters()[0].name,
                     .count = kinds * shard.layout->shard_count(),
                     .type = dp.master_options().dtype().toScalarType()});
  }
  absl::StatusOr<std::unique_ptr<StateStore>> store = StateStore::Create(std::move(slots), place);
  PLAIT_RETURN_IF_ERROR(dp.mesh().world().Agree(store.status()));
  return std::unique_ptr<ShardedOptimizer>(new ShardedOptimizer(dp, options, *std::move(store)));
}

double ShardedOptimizer::DivisorOf(const StepOptions& options, StepResult& result) const {
  result.gradient_norm = dp_.GradientNorm() / options.loss_scale;
  result.skipped = !std::isfinite(result.gradient_norm);
  const double clip = options.clip_norm > 0 ? options.clip_norm / (result.gradient_norm + kClipEpsilon) : 1;
  return options.loss_scale / std::min(clip, 1.0);
}

// Without offloading nothing can fail, and no message is needed.
absl::Status ShardedOptimizer::Agreed(const absl::Status& mine) const {
  return all_resident() ? mine : dp_.mesh().world().Agree(mine);
}

StepResult ShardedOptimizer::Step(const StepOptions& options) {
  const at::NoGradGuard no_grad;
  StepResult result;
  result.status = Agreed(dp_.status());
  if (!result.status.ok()) return result;
  const double divisor = DivisorOf(options, result);
  if (!result.skipped) {
    ++steps_;
    result.status = Agreed(StepShards(divisor));
  }
  dp_.AllGatherParameters();
  return result;
}

std::vector<at::Tensor> ShardedOptimizer::MomentsIn(const at::Tensor& state) const {
  if (names_.empty()) return {};
  return state.chunk(static_cast<std::int64_t>(names_.size()));
}

void ShardedOptimizer::AddTo(Group& group, std::size_t shard, const at::Tensor& master,
                             const std::vector<at::Tensor>& moments, bool decays) const {
  const Shard& s = dp_.shards()[shard];
  const std::int64_t decayed = s.layout->DecayedCount(s.rank);
  const std::int64_t begin = decays ? 0 : decayed;
  const std::int64_t count = decays ? decayed : s.layout->shard_count() - decayed;
  if (count == 0) return;
  AddSlice(group, s, master, moments, begin, count);
}

void ShardedOptimizer::AddSlice(Group& group, const Shard& shard, const at::Tensor& master,
                                const std::vector<at::Tensor>& moments, std::int64_t begin,
                                std::int64_t count) const {
  group.values.push_back(master.narrow(0, begin, count));
  group.gradients.push_back(shard.gradient.narrow(0, begin, count));
  group.moments.resize(moments.size());
  for (std::size_t m = 0; m < moments.size(); ++m) {
    group.moments[m].push_back(moments[m].narrow(0, begin, count));
  }
}

// Steps the matrices of a block's shard, and adds its other parameters to the groups of AdamW.
void ShardedOptimizer::StepMuon(const Shard& shard, const at::Tensor& master,
                                const std::vector<at::Tensor>& moments, double divisor, Group& decayed,
                                Group& others) {
  std::vector<FlatSlice> matrices;
  at::Tensor directions = at::zeros_like(master);
  for (const FlatSlice& slice : shard.layout->Slices(shard.rank)) {
    const FlatParameter& parameter = shard.layout->parameters()[slice.parameter];
    const std::int64_t begin = slice.shard_offset, count = slice.end - slice.begin;
    if (!IsOfMuon(parameter)) {
      AddSlice(parameter.decays ? decayed : others, shard, master, moments, begin, count);
      continue;
    }
    matrices.push_back(slice);
    const at::Tensor gradient = shard.gradient.narrow(0, begin, count) / divisor;
    const at::Tensor momentum = moments[0].narrow(0, begin, count);
    momentum.lerp_(gradient, 1 - options_.momentum);
    directions.narrow(0, begin, count).copy_(gradient.lerp(momentum, options_.momentum));
  }
  if (!HasMatrices(*shard.layout)) return;
  if (shard.layout->ranks() > 1) directions = comm::AllGather(*shard.gather, directions);
  for (const FlatSlice& slice : matrices) {
    const FlatParameter& parameter = shard.layout->parameters()[slice.parameter];
    const at::Tensor whole = directions.narrow(0, parameter.offset, parameter.count).view(parameter.shape);
    const std::int64_t count = slice.end - slice.begin;
    const at::Tensor values = master.narrow(0, slice.shard_offset, count);
    values.mul_(1 - options_.lr * options_.weight_decay);
    values.sub_(NewtonSchulz(whole).reshape({-1}).narrow(0, slice.begin, count),
                options_.lr * MuonScale(whole.size(-2), whole.size(-1)));
  }
}

// In memory, all shards form one group; when offloaded, each is a group.
absl::Status ShardedOptimizer::StepShards(double divisor) {
  Group decayed, others;
  const auto step = [&] {
    if (!decayed.values.empty()) StepGroup(decayed, options_.weight_decay, divisor);
    if (!others.values.empty()) StepGroup(others, 0, divisor);
    decayed = others = {};
  };
  PLAIT_RETURN_IF_ERROR(
      ForEachShard(/*changes=*/true, [&](std::size_t shard, const std::vector<at::Tensor>& moments) {
        return dp_.VisitMaster(shard, /*changes=*/true, [&](const at::Tensor& master) {
          const Shard& s = dp_.shards()[shard];
          if (options_.kind == OptimizerKind::kMuon && s.of_block) {
            StepMuon(s, master, moments, divisor, decayed, others);
            return absl::OkStatus();
          }
          AddTo(decayed, shard, master, moments, /*decays=*/true);
          AddTo(others, shard, master, moments, /*decays=*/false);
          if (!all_resident()) step();
          return absl::OkStatus();
        });
      }));
  step();
  return absl::OkStatus();
}

absl::Status ShardedOptimizer::ForEachShard(bool changes, const VisitMoments& visit) const {
  const std::size_t shards = dp_.shards().size();
  for (std::size_t shard = 0; shard < shards; ++shard) {
    if (!store_) {
      PLAIT_RETURN_IF_ERROR(visit(shard, MomentsIn(states_[shard])));
      continue;
    }
    PLAIT_ASSIGN_OR_RETURN(const at::Tensor state, store_->Acquire(shard));
    store_->Prefetch((shard + 1) % shards);
    const absl::Status visited = visit(shard, MomentsIn(state));
    PLAIT_RETURN_IF_ERROR(store_->Release(shard, changes));
    PLAIT_RETURN_IF_ERROR(visited);
  }
  return absl::OkStatus();
}

void ShardedOptimizer::StepGroup(const Group& g, double weight_decay, double divisor) {
  const at::TensorOptions options = at::TensorOptions(at::kFloat).device(g.values[0].device());
  // The kernels take the divisor as float32, which is too inaccurate for other types.
  const bool divides = divisor != 1 && g.values[0].scalar_type() == at::kFloat;
  if (divisor != 1 && !divides) at::_foreach_div_(g.gradients, divisor);
  const std::optional<at::Tensor> scale =
      divides ? std::optional<at::Tensor>(at::full({}, divisor, options)) : std::nullopt;
  if (options_.kind == OptimizerKind::kSgd) {
    const at::TensorList momenta = g.moments.empty() ? at::TensorList() : at::TensorList(g.moments[0]);
    at::_fused_sgd_(g.values, g.gradients, momenta, weight_decay, options_.momentum, options_.lr, kDampening,
                    kNesterov, kMaximize, /*is_first_step=*/steps_ == 1, scale);
    return;
  }
  const std::vector<at::Tensor> steps(g.values.size(), at::full({}, static_cast<double>(steps_), options));
  using Fused = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                         at::TensorList, double, double, double, double, double, bool, bool,
                         const std::optional<at::Tensor>&, const std::optional<at::Tensor>&);
  const Fused fused = options_.kind == OptimizerKind::kAdam ? static_cast<Fused>(at::_fused_adam_)
                                                            : static_cast<Fused>(at::_fused_adamw_);
  fused(g.values, g.gradients, g.moments[0], g.moments[1], {}, steps, options_.lr, options_.beta1,
        options_.beta2, weight_decay, options_.epsilon, kAmsgrad, kMaximize, scale, std::nullopt);
}

std::int64_t ShardedOptimizer::moment_bytes() const {
  if (store_) return store_->device_bytes() + store_->host_bytes();
  std::int64_t bytes = 0;
  for (const at::Tensor& state : states_) bytes += static_cast<std::int64_t>(state.nbytes());
  return bytes;
}

}  // namespace plait::parallel
