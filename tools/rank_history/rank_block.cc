#include "tools/rank_history/rank_block.h"

#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace plait::rank_history {
namespace {

constexpr std::uint64_t kNotGivenBits = 0x7ff8504c41495400;
constexpr char kRankDimension[] = "rank";

}  // namespace

double NotGiven() { return std::bit_cast<double>(kNotGivenBits); }
bool IsGiven(double value) { return std::bit_cast<std::uint64_t>(value) != kNotGivenBits; }

Statistics StatisticsOver(absl::Span<const double> values) {
  Statistics result{0, values[0], values[0], 0};
  for (const double value : values) {
    result.mean += value;
    // Written so that a NaN, once there, stays.
    if (!(value >= result.minimum)) result.minimum = std::isnan(result.minimum) ? result.minimum : value;
    if (!(value <= result.maximum)) result.maximum = std::isnan(result.maximum) ? result.maximum : value;
  }
  const auto count = static_cast<double>(values.size());
  result.mean /= count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / count);
  return result;
}

absl::StatusOr<RankBlock> RankBlock::Make(std::vector<RankColumn> columns) {
  RankBlock block(std::move(columns));
  for (const RankColumn& column : block.columns_) {
    const std::string& name = column.metric.name;
    PLAIT_RETURN_IF_ERROR(data::CheckMetricName(name));
    if (name == kRankDimension || !block.index_.emplace(name, block.index_.size()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("metric \"", name, "\": expected names that differ, and none \"rank\""));
    }
    block.names_.push_back({name, name + "_min", name + "_max", name + "_std", name + "_per_rank"});
  }
  for (std::size_t place = 0; place < block.columns_.size(); ++place) {
    if (block.columns_[place].over == RankStatistics::kRankZero) continue;
    const Names& made = block.names_[place];
    for (const std::string* name : {&made.minimum, &made.maximum, &made.deviation, &made.per_rank}) {
      if (!block.index_.contains(*name)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("metric \"", *name, "\": it is the name of a statistic of \"", made.mean, "\""));
    }
  }
  block.per_rank_.resize(block.columns_.size());
  return block;
}

absl::Status RankBlock::AddDraw(absl::Span<const data::Scalar> scalars) {
  ++draws_;
  numbers_.resize(numbers_.size() + columns_.size(), NotGiven());
  double* const draw = numbers_.data() + (numbers_.size() - columns_.size());
  absl::Status status;
  for (const data::Scalar& scalar : scalars) {
    const auto found = index_.find(scalar.name);
    if (found != index_.end()) {
      draw[found->second] = scalar.value;
    } else {
      status.Update(
          absl::InvalidArgumentError(absl::StrCat("\"", scalar.name, "\" is no metric of this run")));
    }
  }
  return status;
}

void RankBlock::AppendNumbers(std::vector<double>& numbers) const {
  numbers.insert(numbers.end(), numbers_.begin(), numbers_.end());
}

void RankBlock::Clear() {
  numbers_.clear();
  draws_ = 0;
}

std::vector<data::Metric> RankBlock::Metrics(int ranks) const {
  std::vector<data::Metric> metrics;
  for (std::size_t place = 0; place < columns_.size(); ++place) {
    const Names& names = names_[place];
    const auto add = [&](const std::string& name, const char* statistic) {
      data::Metric metric = columns_[place].metric;
      metric.name = name;
      metric.statistic = statistic;
      metrics.push_back(std::move(metric));
    };
    if (columns_[place].over == RankStatistics::kRankZero) {
      add(names.mean, "value of rank 0");
      continue;
    }
    add(names.mean, "mean over ranks");
    add(names.minimum, "minimum over ranks");
    add(names.maximum, "maximum over ranks");
    add(names.deviation, "standard deviation over ranks");
    if (columns_[place].over == RankStatistics::kStatistics) continue;
    add(names.per_rank, "value of each rank");
    metrics.back().dimension = kRankDimension;
    metrics.back().length = ranks;
  }
  return metrics;
}

const ReducedDraw& RankBlock::Reduce(const GatheredBlock& block, std::int64_t draw) {
  const auto columns = static_cast<std::int64_t>(columns_.size());
  PLAIT_CHECK(static_cast<std::int64_t>(block.numbers.size()) == block.ranks * block.draws * columns);
  reduced_.scalars.clear();
  reduced_.vectors.clear();
  for (std::int64_t place = 0; place < columns; ++place) {
    const auto number = [&](std::int64_t rank) {
      return block.numbers[(rank * block.draws + draw) * columns + place];
    };
    const Names& names = names_[place];
    if (columns_[place].over == RankStatistics::kRankZero) {
      if (IsGiven(number(0))) reduced_.scalars.push_back({names.mean, number(0)});
      continue;
    }
    of_ranks_.clear();
    for (int rank = 0; rank < block.ranks; ++rank) {
      if (IsGiven(number(rank))) of_ranks_.push_back(number(rank));
    }
    if (of_ranks_.empty()) continue;
    const Statistics statistics = StatisticsOver(of_ranks_);
    reduced_.scalars.push_back({names.mean, statistics.mean});
    reduced_.scalars.push_back({names.minimum, statistics.minimum});
    reduced_.scalars.push_back({names.maximum, statistics.maximum});
    reduced_.scalars.push_back({names.deviation, statistics.deviation});
    if (columns_[place].over == RankStatistics::kStatistics) continue;
    per_rank_[place].clear();
    for (int rank = 0; rank < block.ranks; ++rank) per_rank_[place].push_back(number(rank));
    reduced_.vectors.push_back({names.per_rank, per_rank_[place]});
  }
  return reduced_;
}

}  // namespace plait::rank_history
