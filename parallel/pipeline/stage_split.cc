#include "parallel/pipeline/stage_split.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace plait::parallel {
namespace {

using models::ParameterSpec;
using models::ParameterUnit;
using models::UsedBy;

// Costs of ranges of blocks; prologue and epilogue count with the first and last block.
class RangeCosts {
 public:
  explicit RangeCosts(const StageCosts& costs) : sums_(costs.blocks.size() + 1, 0) {
    for (std::size_t i = 0; i < costs.blocks.size(); ++i) {
      double cost = costs.blocks[i] + (i == 0 ? costs.prologue : 0);
      if (i + 1 == costs.blocks.size()) cost += costs.epilogue;
      sums_[i + 1] = sums_[i] + cost;
    }
  }
  double Of(int begin, int end) const { return sums_[end] - sums_[begin]; }
  int blocks() const { return static_cast<int>(sums_.size()) - 1; }

 private:
  std::vector<double> sums_;
};

// Returns the smallest cost, combined by `combine`, over all splits of the blocks into `stages` ranges, and the begin
// of each range. `of_range`: cost of a range, infinite if it is not allowed.
template <typename OfRange, typename Combine>
std::pair<double, std::vector<int>> BestSplit(int blocks, int stages, const OfRange& of_range,
                                              const Combine& combine) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(blocks + 1, kNever));
  std::vector<std::vector<int>> begin(stages + 1, std::vector<int>(blocks + 1, 0));
  best[0][0] = 0;
  for (int stage = 1; stage <= stages; ++stage) {
    for (int end = stage; end <= blocks; ++end) {
      for (int from = stage - 1; from < end; ++from) {
        const double cost = combine(best[stage - 1][from], of_range(from, end));
        if (cost >= best[stage][end]) continue;
        best[stage][end] = cost;
        begin[stage][end] = from;
      }
    }
  }
  std::vector<int> begins(stages);
  for (int stage = stages, end = blocks; stage > 0; --stage) begins[stage - 1] = end = begin[stage][end];
  return {best[stages][blocks], begins};
}

bool IsOn(const ParameterSpec& parameter, bool has_prologue, bool has_epilogue) {
  if (parameter.used_by == UsedBy::kBoth) return has_prologue || has_epilogue;
  return parameter.used_by == UsedBy::kPrologue ? has_prologue : has_epilogue;
}

// Splits a root unit on a rank with these ends: parameters that only it has, and those shared with another rank.
std::vector<ParameterUnit> PartsOfRoot(const ParameterUnit& root, bool has_prologue, bool has_epilogue) {
  std::vector<ParameterUnit> parts(2, root);
  parts[1].name += " (tied)";
  for (ParameterUnit& part : parts) part.parameters.clear();
  for (ParameterSpec parameter : root.parameters) {
    if (!IsOn(parameter, has_prologue, has_epilogue)) continue;
    const bool tied = parameter.used_by == UsedBy::kBoth && has_prologue != has_epilogue;
    PLAIT_CHECK(!tied || parameter.role != models::ParameterRole::kBuffer)
        << "buffer " << parameter.name
        << " of the prologue and the epilogue, which are on two pipeline stages: each would update a copy; "
           "say with "
           "ParameterSpec::used_by which of them has it";
    if (tied) parameter.placement.partial.push_back(kEndsAxis);
    parts[tied ? 1 : 0].parameters.push_back(std::move(parameter));
  }
  return parts;
}

}  // namespace

StageCosts CostsByParameters(const std::vector<ParameterUnit>& units) {
  StageCosts costs;
  // Of the whole tensor: so that ranks with different parts of it compute the same split.
  const auto elements = [](const ParameterSpec& p) {
    double count = 1;
    for (const std::int64_t size : p.placement.boxes.empty() ? p.tensor.sizes().vec() : p.placement.shape) {
      count *= static_cast<double>(size);
    }
    return count;
  };
  for (const ParameterUnit& unit : units) {
    if (unit.block == ParameterUnit::kRoot) {
      for (const ParameterSpec& p : unit.parameters) {
        if (p.used_by != UsedBy::kPrologue) costs.epilogue += elements(p);
      }
      continue;
    }
    costs.blocks.resize(std::max<std::size_t>(costs.blocks.size(), unit.block + 1), 0);
    for (const ParameterSpec& p : unit.parameters) {
      if (p.role != models::ParameterRole::kBuffer) costs.blocks[unit.block] += elements(p);
    }
  }
  return costs;
}

absl::StatusOr<std::vector<StageRange>> SplitBlocks(const StageCosts& costs, int stages) {
  const RangeCosts sums(costs);
  if (sums.blocks() < stages) {
    return absl::InvalidArgumentError(absl::StrCat(stages, " pipeline stages, but the model has ",
                                                   sums.blocks(), " blocks; expected at least ", stages,
                                                   ", so that no stage is empty"));
  }
  const double most = BestSplit(
                          sums.blocks(), stages, [&](int begin, int end) { return sums.Of(begin, end); },
                          [](double a, double b) { return std::max(a, b); })
                          .first;
  const double bound = most * (1 + 1e-9);
  const auto square = [&](int begin, int end) {
    const double cost = sums.Of(begin, end);
    return cost <= bound ? cost * cost : std::numeric_limits<double>::infinity();
  };
  const std::vector<int> begins =
      BestSplit(sums.blocks(), stages, square, [](double a, double b) { return a + b; }).second;
  std::vector<StageRange> ranges;
  for (int stage = 0; stage < stages; ++stage) {
    const int end = stage + 1 < stages ? begins[stage + 1] : sums.blocks();
    ranges.push_back({begins[stage], end - begins[stage], stage == 0, stage + 1 == stages});
  }
  return ranges;
}

std::string ToText(const std::vector<StageRange>& stages) {
  return absl::StrCat("blocks ", absl::StrJoin(stages, " | ", [](std::string* out, const StageRange& stage) {
                        absl::StrAppend(out, stage.first);
                        if (stage.count > 1) absl::StrAppend(out, "-", stage.first + stage.count - 1);
                      }));
}

std::vector<RankUnit> UnitsOfRank(const std::vector<ParameterUnit>& units,
                                  const std::vector<StageRange>& stages,
                                  const std::vector<int>& rank_of_stage, int rank) {
  const bool has_prologue = rank_of_stage.front() == rank, has_epilogue = rank_of_stage.back() == rank;
  std::vector<int> local;  // by block: its number on this rank, or -1
  int next = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const bool mine = rank_of_stage[stage] == rank;
    for (int i = 0; i < stages[stage].count; ++i) local.push_back(mine ? next++ : -1);
  }
  std::vector<RankUnit> result;
  for (std::size_t index = 0; index < units.size(); ++index) {
    const ParameterUnit& unit = units[index];
    if (unit.block == ParameterUnit::kRoot) {
      for (ParameterUnit& part : PartsOfRoot(unit, has_prologue, has_epilogue)) {
        if (!part.parameters.empty()) result.push_back({std::move(part), index});
      }
    } else if (local[unit.block] >= 0) {
      result.push_back({unit, index});
      result.back().unit.block = local[unit.block];
    }
  }
  return result;
}

absl::StatusOr<comm::DeviceMesh> WithEnds(const comm::DeviceMesh& mesh,
                                          const std::vector<int>& rank_of_stage) {
  if (rank_of_stage.front() == rank_of_stage.back()) return mesh;
  return mesh.WithSubset("pp", {rank_of_stage.front(), rank_of_stage.back()}, kEndsAxis);
}

}  // namespace plait::parallel
