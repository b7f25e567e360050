#include "tools/rank_history/rank_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace plait::rank_history {
namespace {

constexpr std::uint64_t kNotGivenBits = 0x7ff8504c41495400;
constexpr char kRankDimension[] = "rank";

// Texts with a NUL behind each, as they go to the other ranks.
void AppendText(std::string& bytes, absl::string_view text) {
  bytes.append(text.data(), text.size());
  bytes.push_back('\0');
}

std::vector<RankColumn> ColumnsOf(const std::string& news) {
  std::vector<RankColumn> columns;
  const std::vector<std::string> texts = absl::StrSplit(news, '\0');
  for (std::size_t i = 0; i + 4 < texts.size(); i += 4) {
    RankColumn column{{texts[i], texts[i + 1], texts[i + 2]}};
    column.over = static_cast<RankStatistics>(texts[i + 3][0] - '0');
    columns.push_back(std::move(column));
  }
  return columns;
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

std::int64_t RankBlock::IndexOf(absl::string_view name) {
  const auto found = index_.find(name);
  return found == index_.end() ? -1 : found->second;
}

absl::Status RankBlock::Declare(const data::Metric& metric, RankStatistics over) {
  PLAIT_RETURN_IF_ERROR(data::CheckMetricName(metric.name));
  if (metric.length != 0)
    return absl::InvalidArgumentError(metric.name + ": statistics over ranks are of numbers, not of vectors");
  if (metric.name == kRankDimension)
    return absl::InvalidArgumentError("metric \"rank\": it is the name of the dimension of ranks");
  if (IndexOf(metric.name) >= 0) return absl::OkStatus();
  index_[metric.name] = static_cast<std::int64_t>(known_.size());
  known_.push_back({{metric, over}});
  columns_.emplace_back();
  return absl::OkStatus();
}

absl::Status RankBlock::AddDraw(absl::Span<const data::Scalar> scalars) {
  for (const data::Scalar& scalar : scalars) {
    if (IndexOf(scalar.name) < 0)
      PLAIT_RETURN_IF_ERROR(Declare({std::string(scalar.name)}, RankStatistics::kStatistics));
  }
  for (const data::Scalar& scalar : scalars) {
    std::vector<double>& column = columns_[IndexOf(scalar.name)];
    column.resize(draws_, NotGiven());
    column.push_back(scalar.value);
  }
  ++draws_;
  return absl::OkStatus();
}

std::string RankBlock::News() const {
  std::string news;
  for (const Known& known : known_) {
    if (known.place >= 0) continue;
    const data::Metric& metric = known.column.metric;
    AppendText(news, metric.name);
    AppendText(news, metric.units);
    AppendText(news, metric.long_name);
    AppendText(news, absl::StrCat(static_cast<int>(known.column.over)));
  }
  return news;
}

absl::Status RankBlock::Agree(absl::Span<const std::string> news) {
  std::set<std::string> agreed;
  for (const RankColumn& column : agreed_) agreed.insert(column.metric.name);
  for (const std::string& of_rank : news) {
    for (RankColumn& column : ColumnsOf(of_rank)) {
      const std::string name = column.metric.name;
      if (!agreed.insert(name).second) continue;
      const std::int64_t own = IndexOf(name);
      if (own >= 0) known_[own].place = static_cast<std::int64_t>(agreed_.size());
      source_.push_back(own);
      names_.push_back({name, name + "_min", name + "_max", name + "_std", name + "_per_rank"});
      agreed_.push_back(std::move(column));
    }
  }
  // A metric of this rank that it names later than others did: it is known to all by now.
  for (std::size_t place = 0; place < agreed_.size(); ++place) {
    const std::int64_t own = IndexOf(agreed_[place].metric.name);
    if (own >= 0) known_[own].place = static_cast<std::int64_t>(place);
    source_[place] = own;
  }
  for (std::size_t place = 0; place < agreed_.size(); ++place) {
    if (agreed_[place].over == RankStatistics::kRankZero) continue;
    const Names& made = names_[place];
    for (const std::string* name : {&made.minimum, &made.maximum, &made.deviation, &made.per_rank}) {
      if (agreed.contains(*name))
        return absl::InvalidArgumentError(
            absl::StrCat("metric \"", *name, "\": it is the name of a statistic of \"", made.mean, "\""));
    }
  }
  return absl::OkStatus();
}

void RankBlock::AppendNumbers(std::vector<double>& numbers) const {
  for (std::int64_t draw = 0; draw < draws_; ++draw) {
    for (const std::int64_t own : source_) {
      const bool given = own >= 0 && draw < static_cast<std::int64_t>(columns_[own].size());
      numbers.push_back(given ? columns_[own][draw] : NotGiven());
    }
  }
}

void RankBlock::Clear() {
  for (std::vector<double>& column : columns_) column.clear();
  draws_ = 0;
}

std::vector<data::Metric> RankBlock::MetricsToDeclare(std::size_t first, int ranks) const {
  std::vector<data::Metric> metrics;
  for (std::size_t place = first; place < agreed_.size(); ++place) {
    const Names& names = names_[place];
    const auto add = [&](const std::string& name, const char* statistic) {
      data::Metric metric = agreed_[place].metric;
      metric.name = name;
      metric.statistic = statistic;
      metrics.push_back(std::move(metric));
    };
    if (agreed_[place].over == RankStatistics::kRankZero) {
      add(names.mean, "value of rank 0");
      continue;
    }
    add(names.mean, "mean over ranks");
    add(names.minimum, "minimum over ranks");
    add(names.maximum, "maximum over ranks");
    add(names.deviation, "standard deviation over ranks");
    if (agreed_[place].over == RankStatistics::kStatistics) continue;
    add(names.per_rank, "value of each rank");
    metrics.back().dimension = kRankDimension;
    metrics.back().length = ranks;
  }
  return metrics;
}

const ReducedDraw& RankBlock::Reduce(const GatheredBlock& block, std::int64_t draw) {
  const auto columns = static_cast<std::int64_t>(agreed_.size());
  PLAIT_CHECK(static_cast<std::int64_t>(block.numbers.size()) == block.ranks * block.draws * columns);
  reduced_.scalars.clear();
  reduced_.vectors.clear();
  per_rank_.resize(agreed_.size());
  for (std::int64_t place = 0; place < columns; ++place) {
    const auto number = [&](std::int64_t rank) {
      return block.numbers[(rank * block.draws + draw) * columns + place];
    };
    const Names& names = names_[place];
    if (agreed_[place].over == RankStatistics::kRankZero) {
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
    if (agreed_[place].over == RankStatistics::kStatistics) continue;
    per_rank_[place].clear();
    for (int rank = 0; rank < block.ranks; ++rank) per_rank_[place].push_back(number(rank));
    reduced_.vectors.push_back({names.per_rank, per_rank_[place]});
  }
  return reduced_;
}

}  // namespace plait::rank_history
