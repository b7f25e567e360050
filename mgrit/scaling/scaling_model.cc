#include "mgrit/scaling/scaling_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mgrit/scaling/rank_clocks.h"

namespace plait::mgrit::scaling {
namespace {

bool IsEvaluation(WorkKind kind) { return kind != WorkKind::kLinearisation && kind != WorkKind::kGradient; }

}  // namespace

WorkSeconds MeasuredOrLike(WorkSeconds seconds) {
  constexpr std::pair<WorkKind, WorkKind> kLike[] = {{WorkKind::kKeptFineStep, WorkKind::kFineStep},
                                                     {WorkKind::kFineStep, WorkKind::kKeptFineStep},
                                                     {WorkKind::kCoarseStep, WorkKind::kFineStep},
                                                     {WorkKind::kLinearisation, WorkKind::kKeptFineStep},
                                                     {WorkKind::kKeptFineAdjoint, WorkKind::kFineAdjoint},
                                                     {WorkKind::kFineAdjoint, WorkKind::kKeptFineAdjoint},
                                                     {WorkKind::kCoarseAdjoint, WorkKind::kFineAdjoint}};
  for (const auto& [kind, like] : kLike) {
    if (seconds[kind] == 0) seconds[kind] = seconds[like];
  }
  return seconds;
}

double PredictBatch(const BatchShape& shape, const Costs& costs, const Machine& machine) {
  const auto work_time = [&](const Event& event) {
    double piece = costs.work[event.work];
    if (IsEvaluation(event.work)) piece += costs.solver;
    if (event.work == WorkKind::kGradient) piece += costs.sum;
    return piece * static_cast<double>(event.count);
  };
  const auto bytes = [&](const Event& event) {
    switch (event.payload) {
      case Payload::kState:
        return costs.state_bytes;
      case Payload::kGradient:
        return costs.gradient_bytes;
      case Payload::kNorms:
        return static_cast<double>(event.count * sizeof(double));
      case Payload::kNothing:
        break;
    }
    return 0.0;
  };
  const std::vector<RankTrace> traces = TraceBatch(shape);
  const double solves = RankClocks(traces, work_time, bytes, costs.latency, costs.byte, machine).Run();
  const int computing = std::min(shape.ranks, machine.cores);
  const double share =
      static_cast<double>(shape.ranks) / computing * (shape.ranks > 1 ? machine.contention : 1);
  return solves + share * (costs.input * static_cast<double>(shape.steps) + costs.head);
}

}  // namespace plait::mgrit::scaling
