#include "parallel/pipeline/simulator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

using Key = std::tuple<ActionKind, int, int>;  // I counts as B

Key KeyOf(const Action& a) {
  const bool input = a.kind == ActionKind::kInputGradient;
  return {input ? ActionKind::kBackward : a.kind, a.stage, a.micro_batch};
}

absl::Status Invalid(int rank, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("rank ", rank, ": ", what));
}

// Checks that each action occurs once, on its stage's rank, after those of the rank that it depends on.
absl::Status CheckRank(const Schedule& s, int rank) {
  std::map<Key, ActionKind> done;
  for (const Action& action : s.actions[rank]) {
    const std::string text = ToText(action);
    const bool there = action.stage >= 0 && action.stage < s.stages() && action.micro_batch >= 0 &&
                       action.micro_batch < s.micro_batches;
    if (!there || s.rank_of_stage[action.stage] != rank) return Invalid(rank, text + " is not its own");
    const auto before = [&](ActionKind kind) {
      const auto found = done.find({kind, action.stage, action.micro_batch});
      return found == done.end() ? std::nullopt : std::optional(found->second);
    };
    if (action.kind != ActionKind::kForward && !before(ActionKind::kForward).has_value()) {
      return Invalid(rank, text + " comes before its forward");
    }
    if (action.kind == ActionKind::kWeightGradient &&
        before(ActionKind::kBackward) != ActionKind::kInputGradient) {
      return Invalid(rank, text + " comes without an input gradient before it");
    }
    if (!done.try_emplace(KeyOf(action), action.kind).second) return Invalid(rank, text + " comes twice");
  }
  for (int stage = 0; stage < s.stages(); ++stage) {
    for (int m = 0; m < s.micro_batches && s.rank_of_stage[stage] == rank; ++m) {
      const auto backward = done.find({ActionKind::kBackward, stage, m});
      if (backward == done.end()) return Invalid(rank, absl::StrCat("no backward of ", stage, "F", m));
      if (backward->second == ActionKind::kInputGradient &&
          done.count({ActionKind::kWeightGradient, stage, m}) == 0) {
        return Invalid(rank, absl::StrCat("no ", stage, "W", m));
      }
    }
  }
  return absl::OkStatus();
}

// The action of another stage that `a` depends on, if any.
std::optional<Key> NeedOf(const Schedule& s, const Action& a) {
  if (a.kind == ActionKind::kWeightGradient) return std::nullopt;
  const bool forward = a.kind == ActionKind::kForward;
  const int from = forward ? a.stage - 1 : a.stage + 1;
  if (from < 0 || from >= s.stages()) return std::nullopt;
  return Key{forward ? ActionKind::kForward : ActionKind::kBackward, from, a.micro_batch};
}

double CostOf(const ActionCosts& costs, const Action& a) {
  const double factor = costs.of_stage.empty() ? 1 : costs.of_stage[a.stage];
  switch (a.kind) {
    case ActionKind::kForward:
      return factor * costs.forward;
    case ActionKind::kInputGradient:
      return factor * costs.input_gradient;
    case ActionKind::kWeightGradient:
      return factor * costs.weight_gradient;
    default:
      return factor * (costs.input_gradient + costs.weight_gradient);
  }
}

class Run {
 public:
  Run(const Schedule& schedule, const ActionCosts& costs) : s_(schedule), costs_(costs) {
    result_.timeline.resize(s_.actions.size());
  }

  // Advances all ranks until none can proceed.
  absl::Status Finish() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < s_.ranks; ++rank) {
        while (Step(rank)) moved = true;
      }
    }
    std::string stuck;
    for (int rank = 0; rank < s_.ranks; ++rank) {
      const std::size_t next = result_.timeline[rank].size();
      if (next == s_.actions[rank].size()) continue;
      const auto [kind, stage, micro_batch] = *NeedOf(s_, s_.actions[rank][next]);
      absl::StrAppend(&stuck, stuck.empty() ? "deadlock: " : "; ", "rank ", rank, " waits in ",
                      ToText(s_.actions[rank][next]), " for ", ToText(Action{kind, stage, micro_batch}),
                      " of rank ", s_.rank_of_stage[stage]);
    }
    if (!stuck.empty()) return absl::FailedPreconditionError(stuck);
    Measure();
    return absl::OkStatus();
  }
  Simulation Take() { return std::move(result_); }

 private:
  bool Step(int rank) {
    std::vector<TimedAction>& done = result_.timeline[rank];
    if (done.size() == s_.actions[rank].size()) return false;
    const Action& action = s_.actions[rank][done.size()];
    double begin = done.empty() ? 0 : done.back().end;
    if (const std::optional<Key> need = NeedOf(s_, action); need.has_value()) {
      const auto found = ends_.find(*need);
      if (found == ends_.end()) return false;
      const bool local = s_.rank_of_stage[std::get<1>(*need)] == rank;
      begin = std::max(begin, found->second + (local ? 0 : costs_.send));
    }
    const double end = begin + CostOf(costs_, action);
    done.push_back({action, begin, end});
    ends_[KeyOf(action)] = end;
    return true;
  }

  void Measure() {
    double longest = 0;
    for (int rank = 0; rank < s_.ranks; ++rank) {
      const std::vector<double> ones(s_.rank_of_stage.size(), 1);
      result_.most_in_flight.push_back(static_cast<int>(MostInFlight(s_, rank, ones)));
      const std::vector<TimedAction>& actions = result_.timeline[rank];
      double work = 0;
      for (const TimedAction& timed : actions) work += timed.end - timed.begin;
      if (actions.empty()) continue;
      result_.makespan = std::max(result_.makespan, actions.back().end);
      const double span = actions.back().end - actions.front().begin;
      if (span <= longest) continue;
      longest = span;
      result_.bubble = 1 - work / span;
    }
  }

  const Schedule& s_;
  const ActionCosts& costs_;
  Simulation result_;
  std::map<Key, double> ends_;
};

}  // namespace

double MostInFlight(const Schedule& schedule, int rank, const std::vector<double>& weights) {
  double in_flight = 0, most = 0;
  for (const Action& action : schedule.actions[rank]) {
    if (action.kind == ActionKind::kInputGradient) continue;
    in_flight += action.kind == ActionKind::kForward ? weights[action.stage] : -weights[action.stage];
    most = std::max(most, in_flight);
  }
  return most;
}

absl::StatusOr<Simulation> Simulate(const Schedule& schedule, const ActionCosts& costs) {
  for (int rank = 0; rank < schedule.ranks; ++rank) PLAIT_RETURN_IF_ERROR(CheckRank(schedule, rank));
  Run run(schedule, costs);
  PLAIT_RETURN_IF_ERROR(run.Finish());
  return run.Take();
}

}  // namespace plait::parallel
