#include "tools/training/expert_load.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "models/moe/distribute.h"
#include "models/moe/moe_mlp.h"

namespace plait::training {
namespace {

using rank_history::RankStatistics;

// The largest over the mean; 1 without rows.
double LargestOverMean(const std::vector<std::int64_t>& rows) {
  const std::int64_t sum = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  if (sum == 0) return 1;
  return static_cast<double>(*std::max_element(rows.begin(), rows.end())) * static_cast<double>(rows.size()) /
         static_cast<double>(sum);
}

}  // namespace

ExpertLoad::ExpertLoad(models::BlockModel& model) {
  const auto* const with_experts = dynamic_cast<const moe::ExpertModel*>(&model);
  if (with_experts == nullptr) return;
  for (const moe::MoeMlp* mlp : with_experts->moe_layers()) {
    layers_.push_back({mlp, absl::StrCat("expert_load_", mlp->layer()), {}});
  }
}

std::vector<Recorded> ExpertLoad::metrics() const {
  if (layers_.empty()) return {};
  std::vector<Recorded> metrics = {
      {{"moe_overload_factor", "1",
        "rows of the busiest rank of a group over their mean, worst block of a rank"},
       RankStatistics::kStatistics},
      {{"moe_max_violation", "1",
        "rows of the busiest expert over their mean, less 1, worst block of a rank"},
       RankStatistics::kStatistics},
      {{"moe_dead_experts", "1", "experts without a row, of all blocks of a rank"},
       RankStatistics::kStatistics},
      {{"moe_dropped", "1", "fraction of rows dropped over capacity"}, RankStatistics::kStatistics}};
  for (const Layer& layer : layers_) {
    data::Metric rows = {.name = layer.name,
                         .units = "1",
                         .long_name = absl::StrCat("rows of each expert of block ", layer.mlp->layer())};
    rows.dimension = "expert";
    rows.length = layer.mlp->options().gate.experts;
    metrics.push_back({std::move(rows)});
  }
  return metrics;
}

std::vector<std::string> ExpertLoad::heat_maps() const {
  std::vector<std::string> names;
  for (const Layer& layer : layers_) names.push_back(layer.name);
  return names;
}

void ExpertLoad::TakeStep(std::vector<data::Scalar>& scalars, std::vector<data::Vector>& vectors) {
  double overload = 0, violation = 0, dead = 0;
  std::int64_t rows = 0, dropped = 0;
  for (Layer& layer : layers_) {
    const moe::LayerLoad& load = layer.mlp->load();
    if (load.rows_of_expert.empty()) continue;  // of another stage
    layer.rows.assign(load.rows_of_expert.begin(), load.rows_of_expert.end());
    vectors.push_back({layer.name, layer.rows});
    overload = std::max(overload, LargestOverMean(load.rows_of_rank));
    violation = std::max(violation, LargestOverMean(load.rows_of_expert) - 1);
    dead += static_cast<double>(std::count(load.rows_of_expert.begin(), load.rows_of_expert.end(), 0));
    rows = std::accumulate(load.rows_of_expert.begin(), load.rows_of_expert.end(), rows);
    dropped += load.dropped;
  }
  if (rows == 0) return;
  scalars.insert(scalars.end(), {{"moe_overload_factor", overload},
                                 {"moe_max_violation", violation},
                                 {"moe_dead_experts", dead},
                                 {"moe_dropped", static_cast<double>(dropped) / static_cast<double>(rows)}});
}

}  // namespace plait::training
