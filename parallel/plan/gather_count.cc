#include "parallel/plan/gather_count.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace plait::parallel {
namespace {

// A unit is unsharded from its gather until the last hold ends.
class HeldUnit {
 public:
  // `whole`: counter of units that are unsharded, and `most`, its maximum; null: not counted.
  explicit HeldUnit(int* whole = nullptr, int* most = nullptr) : whole_(whole), most_(most) {}
  void Gather() {
    if (in_memory_) return;
    ++gathers_;
    in_memory_ = true;
    if (whole_ != nullptr) *most_ = std::max(*most_, ++*whole_);
  }
  void Hold() {
    ++holds_;
    Gather();
  }
  void Drop() {
    if (--holds_ == 0) Release();
  }
  void Begin() { ++begun_; }  // a backward: its holds end with the unit's gradients
  void End() {
    for (; begun_ > 0; --begun_) Drop();
  }
  void ReshardIfUnheld() {
    if (holds_ == 0) Release();
  }
  int gathers() const { return gathers_; }

 private:
  void Release() {
    if (in_memory_ && whole_ != nullptr) --*whole_;
    in_memory_ = false;
  }
  int *whole_, *most_;
  bool in_memory_ = false;
  int holds_ = 0, begun_ = 0, gathers_ = 0;
};

// Blocks [first, first + count) of the rank.
struct Blocks {
  int first = 0, count = 0;
};

class Holds {
 public:
  Holds(int blocks, bool reshard, bool prefetch)
      : reshard_(reshard), prefetch_(prefetch), blocks_(blocks, HeldUnit(&whole_, &most_)) {}
  Holds(const Holds&) = delete;
  Holds& operator=(const Holds&) = delete;

  // `following`: the block that runs after the stage, or negative.
  void Forward(Blocks stage, int following) {
    roots_.Hold();  // until the backward
    for (int b = stage.first; b < stage.first + stage.count; ++b) {
      blocks_[b].Hold();
      DropFollowing();
      b + 1 < stage.first + stage.count ? GatherAhead(b + 1) : HoldFollowing(following, b);
      if (reshard_) blocks_[b].Drop();
    }
  }

  void Backward(Blocks stage, int following, bool gives_weight_gradients) {
    roots_.Begin();
    for (int b = stage.first + stage.count - 1; b >= stage.first; --b) {
      if (reshard_) blocks_[b].Hold();
      blocks_[b].Begin();
      DropFollowing();
      if (b == stage.first) HoldFollowing(following, b);
      if (reshard_ && b > stage.first) GatherAhead(b - 1);
      if (gives_weight_gradients) blocks_[b].End();
    }
    EndUses();
  }

  void Hold(Blocks stage) {
    for (int b = stage.first; b < stage.first + stage.count; ++b) blocks_[b].Hold();
    roots_.Hold();
  }
  void Drop(Blocks stage) {
    for (int b = stage.first; b < stage.first + stage.count; ++b) blocks_[b].Drop();
    roots_.Drop();
  }
  void EndUses() {
    roots_.End();
    for (HeldUnit& block : blocks_) block.End();
    roots_.ReshardIfUnheld();
    for (HeldUnit& block : blocks_) block.ReshardIfUnheld();
  }

  GatherCount Result() const {
    GatherCount count = {.roots = roots_.gathers(), .most_blocks = most_};
    for (const HeldUnit& block : blocks_) count.blocks.push_back(block.gathers());
    return count;
  }

 private:
  void GatherAhead(int block) {
    if (prefetch_) blocks_[block].Gather();
  }
  void HoldFollowing(int block, int now) {
    if (block < 0 || !(prefetch_ || block == now)) return;
    blocks_[block].Hold();
    following_ = block;
  }
  void DropFollowing() {
    if (following_ >= 0) blocks_[following_].Drop();
    following_ = -1;
  }

  bool reshard_, prefetch_;
  int following_ = -1;        // held ahead
  int whole_ = 0, most_ = 0;  // blocks
  HeldUnit roots_;
  std::vector<HeldUnit> blocks_;
};

}  // namespace

GatherCount CountGathers(const Schedule& schedule, const std::vector<StageRange>& stages, int rank,
                         bool reshard, bool prefetch) {
  std::map<int, Blocks> of_stage;
  int blocks = 0;
  for (int stage = 0; stage < schedule.stages(); ++stage) {
    if (schedule.rank_of_stage[stage] != rank) continue;
    of_stage[stage] = {blocks, stages[stage].count};
    blocks += stages[stage].count;
  }
  Holds holds(blocks, reshard, prefetch);
  const std::vector<Action>& actions = schedule.actions[rank];
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Blocks stage = of_stage.at(actions[i].stage);
    const auto next = std::find_if(actions.begin() + static_cast<std::ptrdiff_t>(i) + 1, actions.end(),
                                   [](const Action& a) { return a.kind != ActionKind::kWeightGradient; });
    int following = -1;
    if (next != actions.end()) {
      const Blocks behind = of_stage.at(next->stage);
      following = behind.first + (next->kind == ActionKind::kForward ? 0 : behind.count - 1);
    }
    switch (actions[i].kind) {
      case ActionKind::kForward:
        holds.Forward(stage, following);
        break;
      case ActionKind::kBackward:
        holds.Backward(stage, following, /*gives_weight_gradients=*/true);
        break;
      case ActionKind::kInputGradient:
        holds.Hold(stage);
        holds.Backward(stage, following, /*gives_weight_gradients=*/false);
        break;
      case ActionKind::kWeightGradient:
        holds.EndUses();
        holds.Drop(stage);
        break;
    }
  }
  return holds.Result();
}

}  // namespace plait::parallel
