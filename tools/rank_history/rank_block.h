// The numbers that ranks have not exchanged yet, and what comes out when they have: statistics over ranks.
// The arithmetic of RankHistory, without messages.
//
// Ranks agree on columns (one per metric, in the same order everywhere); a rank's numbers of some draws are
// then a block of doubles (draw, column), the same size on all ranks.
#ifndef PLAIT_TOOLS_RANK_HISTORY_RANK_BLOCK_H_
#define PLAIT_TOOLS_RANK_HISTORY_RANK_BLOCK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/history/metric.h"

namespace plait::rank_history {

// What the file holds of a metric: the value of rank 0; mean, minimum, maximum and standard deviation over
// the ranks; the same and the value of each rank.
enum class RankStatistics { kRankZero, kStatistics, kEachRank };

struct RankColumn {
  data::Metric metric;
  RankStatistics over = RankStatistics::kStatistics;
};

// Stands for "not given" among a rank's numbers: a NaN with a payload of its own, so that a NaN that was
// given is told apart. Its bits must travel unchanged.
double NotGiven();
bool IsGiven(double value);

struct Statistics {
  double mean, minimum, maximum, deviation;
};
// Over the values that were given, at least one. The deviation is that of the population; two passes.
Statistics StatisticsOver(absl::Span<const double> values);

// The blocks of all ranks, by rank.
struct GatheredBlock {
  int ranks = 1;
  std::int64_t draws = 0;
  std::vector<double> numbers = {};  // (rank, draw, column)
};

// What goes into the history for one draw. Names and values stay valid until the next call of Reduce.
struct ReducedDraw {
  std::vector<data::Scalar> scalars;
  std::vector<data::Vector> vectors;
};

class RankBlock {
 public:
  // InvalidArgument for a bad name.
  absl::Status Declare(const data::Metric& metric, RankStatistics over);
  absl::Status AddDraw(absl::Span<const data::Scalar> scalars);
  std::int64_t draws() const { return draws_; }

  // Metrics that the ranks have not agreed on yet, as bytes for the other ranks; empty: none.
  std::string News() const;
  // The news of all ranks, by rank: adds their metrics to the agreed columns. What a lower rank says about
  // a metric counts. The same result on all ranks. InvalidArgument where names that are made for statistics
  // ("dt_min") are metrics too.
  absl::Status Agree(absl::Span<const std::string> news);
  const std::vector<RankColumn>& agreed() const { return agreed_; }

  // This rank's numbers (draw, agreed column).
  void AppendNumbers(std::vector<double>& numbers) const;
  void Clear();

  // On the rank that writes. What the history is to know about the agreed metrics from `first` on.
  std::vector<data::Metric> MetricsToDeclare(std::size_t first, int ranks) const;
  const ReducedDraw& Reduce(const GatheredBlock& block, std::int64_t draw);

 private:
  struct Known {
    RankColumn column;
    std::int64_t place = -1;  // among the agreed columns
  };
  struct Names {
    std::string mean, minimum, maximum, deviation, per_rank;
  };
  std::int64_t IndexOf(absl::string_view name);

  std::vector<Known> known_;  // of this rank, in the order in which it named them
  absl::flat_hash_map<std::string, std::int64_t> index_;
  std::vector<RankColumn> agreed_;
  std::vector<Names> names_;  // of the agreed columns
  std::vector<std::int64_t>
      source_;  // by agreed column: index into known_, -1 for a metric that this rank lacks
  std::int64_t draws_ = 0;
  std::vector<std::vector<double>> columns_;  // by known metric: numbers of the draws so far, may be shorter

  ReducedDraw reduced_;
  std::vector<double> of_ranks_;
  std::vector<std::vector<double>> per_rank_;
};

}  // namespace plait::rank_history

#endif  // PLAIT_TOOLS_RANK_HISTORY_RANK_BLOCK_H_
