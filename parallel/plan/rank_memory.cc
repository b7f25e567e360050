#include "parallel/plan/rank_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "parallel/plan/gather_count.h"
#include "parallel/sharding/unit_parts.h"

namespace plait::parallel {
namespace {

using models::ParameterSpec;
using models::ParameterUnit;
using models::UsedBy;

// While one unit's gradients are reduced, those of the next one are computed (parallel/sharding/reductions.cc).
constexpr std::int64_t kGradientsInWork = 2;

std::int64_t BytesOf(at::ScalarType type) { return static_cast<std::int64_t>(c10::elementSize(type)); }

// Bytes of gradients that stay in the memory in which autograd made them (Unit::CanAdopt): from one backward to that of
// the next step, or to the end of their reduction. By the part that computes them.
struct Adopted {
  std::int64_t prologue = 0, block = 0, epilogue = 0;
};

bool IsAdopted(const UnitPart& part, const FlatLayout& layout, const PlannedRun& run) {
  return run.master_type == run.compute_type && part.size() == 1 && part[0]->tensor.numel() == layout.count();
}

// Calls visit(part, its layout, whether its gradient is adopted).
template <typename Visit>
void VisitParts(const ParameterUnit& unit, const PlannedRun& run, const Visit& visit) {
  for (const UnitPart& part : PartsOf(unit, run.strategy, run.part_bytes)) {
    const FlatLayout layout = LayoutOf(part, run.shard_ranks());
    visit(part, layout, IsAdopted(part, layout, run));
  }
}

Adopted AdoptedOf(const RankUnits& rank, const PlannedRun& run) {
  const std::int64_t e = BytesOf(run.master_type);
  Adopted adopted;
  for (const ParameterUnit& root : rank.roots) {
    VisitParts(root, run, [&](const UnitPart& part, const FlatLayout& layout, bool is_adopted) {
      const bool at_end = part[0]->used_by == UsedBy::kEpilogue;
      if (is_adopted) (at_end ? adopted.epilogue : adopted.prologue) += e * layout.count();
    });
  }
  VisitParts(rank.block, run, [&](const UnitPart&, const FlatLayout& layout, bool is_adopted) {
    if (is_adopted) adopted.block += e * layout.count();
  });
  return adopted;
}

// Gradients of parameters that both ends use: autograd keeps the head's until it has the embedding's.
std::int64_t TiedBytes(const RankUnits& rank, const PlannedRun& run) {
  std::int64_t count = 0;
  for (const ParameterUnit& root : rank.roots) {
    for (const ParameterSpec& p : root.parameters) count += p.used_by == UsedBy::kBoth ? p.tensor.numel() : 0;
  }
  return count * BytesOf(run.compute_type);
}

bool ShardsOnRanks(const PlannedRun& run) { return ShardsGradients(run.strategy) && run.shard_ranks() > 1; }
bool AddsUnsharded(const PlannedRun& run) { return run.micro_batches > 1 && !run.reduce_each_micro_batch; }

// Flat buffers of gradients that are released when they are reduced, and reused by size.
std::int64_t GradientBuffers(const RankUnits& rank, const PlannedRun& run) {
  if (!ShardsOnRanks(run) || AddsUnsharded(run)) return 0;
  std::int64_t count = 0;
  for (const ParameterUnit& root : rank.roots) {
    VisitParts(root, run, [&](const UnitPart&, const FlatLayout& layout, bool is_adopted) {
      if (!is_adopted) count += layout.count();
    });
  }
  std::map<std::int64_t, std::int64_t> of_size;
  VisitParts(rank.block, run, [&](const UnitPart&, const FlatLayout& layout, bool is_adopted) {
    if (!is_adopted) of_size[layout.count()] += rank.blocks;
  });
  for (const auto& [size, buffers] : of_size) count += size * std::min(buffers, kGradientsInWork);
  return count * BytesOf(run.master_type);
}

// Buffers of parameters that are unsharded while they are used.
std::int64_t GatherBuffers(const StepPlan& plan, int pp_rank, const std::vector<PlannedUnit>& roots,
                           const PlannedUnit& block) {
  const PlannedRun& run = plan.run;
  if (!ShardsParameters(run.strategy) || run.shard_ranks() == 1) return 0;
  const GatherCount gathers =
      CountGathers(plan.schedule, plan.stages, pp_rank, run.reshard_after_forward, run.prefetch);
  std::int64_t count = gathers.most_blocks * block.count;
  for (const PlannedUnit& root : roots) count += root.count;
  return count * BytesOf(run.compute_type);
}

// Replays a rank's activations through a step.
class Replay {
 public:
  Replay(const StepPlan& plan, int pp_rank, const PassBytes& bytes, const RankUnits& rank)
      : plan_(plan),
        pp_rank_(pp_rank),
        bytes_(bytes),
        adopted_(AdoptedOf(rank, plan.run)),
        tied_(TiedBytes(rank, plan.run)) {}

  std::int64_t Most() {
    const std::vector<Action>& actions = plan_.schedule.actions[pp_rank_];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const std::int64_t posted = i + 1 < actions.size() ? Received(actions[i + 1]) : 0;
      live_ += posted;
      Do(actions[i]);
      live_ -= posted;
    }
    return most_;
  }

 private:
  // Bytes that an action receives from another rank; allocated from the action before on, as receives are posted ahead.
  std::int64_t Received(const Action& action) const {
    const bool forward = action.kind == ActionKind::kForward;
    const int from = forward ? action.stage - 1 : action.stage + 1;
    if (action.kind == ActionKind::kWeightGradient || from < 0 || from >= plan_.schedule.stages()) return 0;
    return plan_.schedule.rank_of_stage[from] == pp_rank_ ? 0 : bytes_.hidden;
  }

  std::int64_t KeptInput(const Action& backward) const {
    return Received({ActionKind::kForward, backward.stage, backward.micro_batch});
  }

  void Do(const Action& action) {
    switch (action.kind) {
      case ActionKind::kForward:
        return Forward(action);
      case ActionKind::kInputGradient:
        return InputGradient(action);
      case ActionKind::kWeightGradient:
        return WeightGradient(plan_.stages[action.stage]);
      default:
        return Backward(action);
    }
  }
  void Reach(std::int64_t above) { most_ = std::max(most_, live_ - missing_ + above); }

  void Forward(const Action& action) {
    const StageRange& stage = plan_.stages[action.stage];
    const auto pass = [this](const PartBytes& part, int count) {
      Reach(part.forward_peak);
      live_ += (count - 1) * part.kept;
      Reach(part.forward_peak);
      live_ += part.kept;
    };
    if (stage.prologue) pass(bytes_.prologue, 1);
    live_ += Received(action);  // kept too
    if (stage.count > 0) pass(bytes_.block, stage.count);
    if (stage.epilogue) pass(bytes_.epilogue, 1);
  }
  std::int64_t TotalAdopted() const {
    std::int64_t total = 0;
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      if (plan_.schedule.rank_of_stage[s] != pp_rank_) continue;
      const StageRange& stage = plan_.stages[s];
      total += stage.count * adopted_.block + (stage.prologue ? adopted_.prologue : 0) +
               (stage.epilogue ? adopted_.epilogue : 0);
    }
    return total;
  }

  // The first backward of a step releases the gradients of the step before; each stage's come with its own backward.
  void BeginGradients() {
    if (begun_) return;
    begun_ = true;
    if (!ShardsOnRanks(plan_.run) || AddsUnsharded(plan_.run)) missing_ = TotalAdopted();
  }
  // A part's gradients exist from now until the step ends, or until they are reduced during the next part.
  void Arrive(int stage, std::int64_t adopted) {
    if (ShardsOnRanks(plan_.run) && !AddsUnsharded(plan_.run)) {
      in_work_ = adopted;
    } else if (arrived_.count(stage) == 0) {
      missing_ -= adopted;
    }
  }

  void Backward(const Action& action) {
    BeginGradients();
    const StageRange& stage = plan_.stages[action.stage];
    const bool tied = stage.prologue && stage.epilogue;
    in_work_ = 0;
    if (stage.epilogue) {
      Reach(bytes_.epilogue.backward_peak);
      live_ -= bytes_.epilogue.kept;
      Arrive(action.stage, adopted_.epilogue);
    }
    if (tied) live_ += tied_;
    for (int i = 0; i < stage.count; ++i) {
      Reach(bytes_.block.backward_peak + in_work_);
      live_ -= bytes_.block.kept;
      Arrive(action.stage, adopted_.block);
    }
    if (stage.prologue) {
      Reach(bytes_.prologue.backward_peak + in_work_);
      live_ -= bytes_.prologue.kept;
      Arrive(action.stage, adopted_.prologue);
    }
    if (tied) live_ -= tied_;
    live_ -= KeptInput(action);
    arrived_.insert(action.stage);
  }

  void InputGradient(const Action& action) {
    const StageRange& stage = plan_.stages[action.stage];
    // Nothing is released before the end, and gradients that have reached the parameters stay (SplitBackward).
    std::int64_t arrived = 0, released = 0;
    const auto pass = [&](const PartBytes& part, int count) {
      arrived += count * (part.input_peak - bytes_.hidden);
      released += count * (part.kept - part.kept_for_weights);
    };
    if (stage.epilogue) pass(bytes_.epilogue, 1);
    pass(bytes_.block, stage.count);
    if (stage.prologue) released += bytes_.prologue.kept - bytes_.prologue.kept_for_weights;
    Reach(arrived + bytes_.hidden);
    live_ -= released;
    live_ -= KeptInput(action);
  }

  void WeightGradient(const StageRange& stage) {
    Reach(std::max({bytes_.block.weight_peak, stage.prologue ? bytes_.prologue.weight_peak : 0,
                    stage.epilogue ? bytes_.epilogue.weight_peak : 0}));
    live_ -= stage.count * bytes_.block.kept_for_weights +
             (stage.prologue ? bytes_.prologue.kept_for_weights : 0) +
             (stage.epilogue ? bytes_.epilogue.kept_for_weights : 0);
  }

  const StepPlan& plan_;
  const int pp_rank_;
  const PassBytes& bytes_;
  const Adopted adopted_;
  const std::int64_t tied_;
  std::int64_t live_ = 0, missing_ = 0, in_work_ = 0, most_ = 0;
  bool begun_ = false;
  std::set<int> arrived_;  // stages whose gradients are there
};

}  // namespace

MemoryPlan RankMemory(const StepPlan& plan, int pp_rank, const PassBytes& bytes) {
  const PlannedRun& run = plan.run;
  const RankUnits rank = UnitsOf(plan, {.pp = pp_rank});
  std::vector<PlannedUnit> units = PlanUnits(rank.roots, run.shard_ranks());
  const PlannedUnit block = PlanUnits({rank.block}, run.shard_ranks())[0];
  const std::int64_t in_work = GatherBuffers(plan, pp_rank, units, block) + GradientBuffers(rank, run);
  units.insert(units.end(), rank.blocks, block);
  return PlanMemory({.units = units,
                     .strategy = run.strategy,
                     .replicate_ranks = run.replicate_ranks(),
                     .shard_ranks = run.shard_ranks(),
                     .master_type = run.master_type,
                     .compute_type = run.compute_type,
                     .optimizer = run.optimizer,
                     .reshard_after_forward = run.reshard_after_forward,
                     .prefetch = run.prefetch,
                     .adds_unsharded_gradients = AddsUnsharded(run),
                     .micro_batch = run.micro_batch,
                     .fixed_activation_bytes = Replay(plan, pp_rank, bytes, rank).Most(),
                     .working_bytes = in_work});
}

}  // namespace plait::parallel
