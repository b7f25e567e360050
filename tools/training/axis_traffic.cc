#include "tools/training/axis_traffic.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "parallel/context/data_mesh.h"
#include "parallel/pipeline/stage_split.h"

namespace plait::training {

AxisTraffic::AxisTraffic(const comm::DeviceMesh& mesh, int expert_ranks, parallel::Strategy strategy)
    : world_(mesh.world()) {
  std::vector<comm::MeshAxis> axes = mesh.axes();
  axes.push_back({"ep", expert_ranks});
  if (mesh.Has("cp")) axes.push_back({context_parallel::DataAxis(strategy), mesh.axis("cp").size()});
  for (const comm::MeshAxis& axis : axes) {
    if (axis.size == 1) continue;
    axes_[axis.name].columns = {absl::StrCat("comm_bytes_", axis.name),
                                absl::StrCat("comm_in_flight_", axis.name),
                                absl::StrCat("comm_exposed_", axis.name)};
  }
}

std::string AxisTraffic::ColumnOf(const std::string& axis) const {
  if (axis == parallel::kEndsAxis) return "pp";  // both ends of a pipeline sum the gradients that they share
  if (axis == "tokens" && axes_.count("ep") > 0) return "ep";
  if (axis == "tokens" && axes_.count("dp_shard") > 0) return "dp_shard";
  if (axis == "tokens" || axis == "ep_replicate") return "dp_replicate";
  return axis == "ep_shard" ? "dp_shard" : axis;
}

std::vector<Recorded> AxisTraffic::metrics() const {
  constexpr auto kStatistics = rank_history::RankStatistics::kStatistics;
  std::vector<Recorded> metrics;
  for (const auto& [name, axis] : axes_) {
    metrics.push_back({{axis.columns[kBytes], "bytes", "sent by a rank"}, kStatistics});
    metrics.push_back(
        {{axis.columns[kInFlight], "s", "messages and collectives in flight, added up"}, kStatistics});
    metrics.push_back(
        {{axis.columns[kExposed], "s", "of these, time in which the rank waited"}, kStatistics});
  }
  return metrics;
}

// In the first step the engine broadcasts the order of its reductions over data-parallel ranks. This set-up is not
// counted, so that a resumed run has the same numbers as an uninterrupted one.
std::map<std::string, AxisTraffic::Numbers> AxisTraffic::SoFar() const {
  std::map<std::string, Numbers> traffic;
  for (const auto& [axis, operations] : world_.stats()) {
    const std::string column = ColumnOf(axis);
    const bool skips_broadcasts = absl::StartsWith(column, "dp_");
    Numbers& sum = traffic[column];
    for (std::size_t kind = 0; kind < operations.size(); ++kind) {
      if (skips_broadcasts && kind == static_cast<std::size_t>(comm::Operation::kBroadcast)) continue;
      sum[kBytes] += static_cast<double>(operations[kind].wire_bytes);
      sum[kInFlight] += operations[kind].in_flight_seconds;
      sum[kExposed] += operations[kind].exposed_seconds;
    }
  }
  return traffic;
}

void AxisTraffic::BeginStep() { before_ = SoFar(); }

void AxisTraffic::EndStep() {
  std::map<std::string, Numbers> now = SoFar();
  for (auto& [name, axis] : axes_) {
    for (std::size_t i = 0; i < kNumbers; ++i) axis.sums[i] += now[name][i] - before_[name][i];
  }
  ++steps_;
}

void AxisTraffic::TakeScalars(std::vector<data::Scalar>& scalars) {
  if (steps_ == 0) return;
  for (auto& [name, axis] : axes_) {
    for (std::size_t i = 0; i < kNumbers; ++i) scalars.push_back({axis.columns[i], axis.sums[i]});
    axis.sums = {};
  }
  steps_ = 0;
}

void AxisTraffic::AddTo(SinceDraw& sums) const {
  if (steps_ == 0) return;
  for (const auto& [name, axis] : axes_) {
    for (std::size_t i = 0; i < kNumbers; ++i) sums[axis.columns[i]] = axis.sums[i];
  }
}

void AxisTraffic::Restore(const std::optional<SinceDraw>& sums) {
  if (sums.has_value() && sums->empty()) return;
  ++steps_;
  for (auto& [name, axis] : axes_) {
    for (std::size_t i = 0; i < kNumbers; ++i) axis.sums[i] = Since(sums, axis.columns[i]);
  }
}

}  // namespace plait::training
