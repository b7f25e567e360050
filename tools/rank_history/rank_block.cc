#include "tools/rank_history/rank_block.h"

#include <algorithm>
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

absl::Status CheckLength(const RankColumn& column) {
  const data::Metric& metric = column.metric;
  if (metric.length < 0 || metric.length > data::kLongestVector) {
    return absl::InvalidArgumentError(absl::StrCat("metric \"", metric.name, "\": a vector of ",
                                                   metric.length, ", expected 0 (a number) to ",
                                                   data::kLongestVector));
  }
  if (metric.length == 0 || column.over == RankStatistics::kRankZero) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "metric \"", metric.name, "\": a vector has no statistics over ranks, expected kRankZero"));
}

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
    PLAIT_RETURN_IF_ERROR(CheckLength(column));
    block.first_.push_back(block.width_);
    block.width_ += data::NumbersOf(column.metric);
    block.names_.push_back({name, name + "_mean", name + "_min", name + "_max", name + "_std",
                            name + "_per_rank", kRankDimension});
    if (column.over == RankStatistics::kStatistics) block.names_.back().mean = name;
  }
  for (std::size_t place = 0; place < block.columns_.size(); ++place) {
    if (block.columns_[place].over == RankStatistics::kRankZero) continue;
    const Names& made = block.names_[place];
    for (const std::string* name :
         {&made.mean, &made.minimum, &made.maximum, &made.deviation, &made.per_rank}) {
      if (*name == made.own || !block.index_.contains(*name)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("metric \"", *name, "\": it is the name of a statistic of \"", made.own, "\""));
    }
  }
  block.per_rank_.resize(block.columns_.size());
  return block;
}

absl::Status RankBlock::Place(absl::string_view name, absl::Span<const double> values,
                              absl::Span<double> draw) const {
  const auto found = index_.find(name);
  if (found == index_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is no metric of this run"));
  }
  const auto numbers = static_cast<std::size_t>(data::NumbersOf(columns_[found->second].metric));
  if (values.size() != numbers) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\": ", values.size(), " values were given, but it has ", numbers));
  }
  std::copy(values.begin(), values.end(), draw.begin() + first_[found->second]);
  return absl::OkStatus();
}

absl::Status RankBlock::AddDraw(absl::Span<const data::Scalar> scalars,
                                absl::Span<const data::Vector> vectors) {
  ++draws_;
  numbers_.resize(numbers_.size() + width_, NotGiven());
  const absl::Span<double> draw = absl::MakeSpan(numbers_).last(width_);
  absl::Status status;
  for (const data::Scalar& scalar : scalars) {
    status.Update(Place(scalar.name, absl::MakeConstSpan(&scalar.value, 1), draw));
  }
  for (const data::Vector& vector : vectors) status.Update(Place(vector.name, vector.values, draw));
  return status;
}

void RankBlock::AppendNumbers(std::vector<double>& numbers) const {
  numbers.insert(numbers.end(), numbers_.begin(), numbers_.end());
}

void RankBlock::Clear() {
  numbers_.clear();
  draws_ = 0;
}

void RankBlock::KeepApart(absl::Span<const data::Metric> held, int ranks) {
  for (Names& names : names_) {
    const auto is_in_the_way = [&](const data::Metric& metric) {
      const bool takes_a_name = metric.name == names.per_rank || metric.dimension == names.rank_dimension;
      return takes_a_name && metric.length != ranks;
    };
    if (std::none_of(held.begin(), held.end(), is_in_the_way)) continue;
    absl::StrAppend(&names.per_rank, "_of_", ranks);
    absl::StrAppend(&names.rank_dimension, "_of_", ranks);
  }
}

std::vector<data::Metric> RankBlock::Metrics(int ranks) const {
  std::vector<data::Metric> metrics;
  for (std::size_t place = 0; place < columns_.size(); ++place) {
    const Names& names = names_[place];
    const auto add = [&](const std::string& name, const char* statistic) {
      data::Metric metric = columns_[place].metric;
      metric.name = name;
      metric.statistic = statistic;
      metric.integer = metric.integer && columns_[place].over == RankStatistics::kRankZero;
      metrics.push_back(std::move(metric));
    };
    if (columns_[place].over == RankStatistics::kRankZero) {
      const bool is_vector = columns_[place].metric.length > 0;
      add(names.own, is_vector ? "value of the first rank that has it" : "value of rank 0");
      continue;
    }
    if (columns_[place].over == RankStatistics::kEachRank) add(names.own, "value of rank 0");
    add(names.mean, "mean over ranks");
    add(names.minimum, "minimum over ranks");
    add(names.maximum, "maximum over ranks");
    add(names.deviation, "standard deviation over ranks");
    if (columns_[place].over == RankStatistics::kStatistics) continue;
    add(names.per_rank, "value of each rank");
    metrics.back().dimension = names.rank_dimension;
    metrics.back().length = ranks;
  }
  return metrics;
}

const ReducedDraw& RankBlock::Reduce(const GatheredBlock& block, std::int64_t draw) {
  PLAIT_CHECK(static_cast<std::int64_t>(block.numbers.size()) == block.ranks * block.draws * width_);
  reduced_.scalars.clear();
  reduced_.vectors.clear();
  for (std::size_t place = 0; place < columns_.size(); ++place) {
    const auto number = [&](std::int64_t rank) -> const double& {
      return block.numbers[(rank * block.draws + draw) * width_ + first_[place]];
    };
    const Names& names = names_[place];
    if (const std::int64_t length = columns_[place].metric.length; length > 0) {
      int rank = 0;
      while (rank < block.ranks && !IsGiven(number(rank))) ++rank;
      if (rank < block.ranks) {
        reduced_.vectors.push_back({names.own, absl::MakeConstSpan(&number(rank), length)});
      }
      continue;
    }
    if (columns_[place].over == RankStatistics::kRankZero) {
      if (IsGiven(number(0))) reduced_.scalars.push_back({names.own, number(0)});
      continue;
    }
    of_ranks_.clear();
    for (int rank = 0; rank < block.ranks; ++rank) {
      if (IsGiven(number(rank))) of_ranks_.push_back(number(rank));
    }
    if (of_ranks_.empty()) continue;
    const Statistics statistics = StatisticsOver(of_ranks_);
    if (columns_[place].over == RankStatistics::kEachRank && IsGiven(number(0))) {
      reduced_.scalars.push_back({names.own, number(0)});
    }
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
