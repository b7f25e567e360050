// The numbers that ranks have not exchanged yet, and what comes out when they have: statistics over ranks.
// The arithmetic of RankHistory, without messages.
//
// All ranks have the same columns, one per metric, with a number each or the numbers of a vector; a rank's
// numbers of some draws are a block of doubles (draw, number), the same size on all ranks.
#ifndef PLAIT_TOOLS_RANK_HISTORY_RANK_BLOCK_H_
#define PLAIT_TOOLS_RANK_HISTORY_RANK_BLOCK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/history/metric.h"

namespace plait::rank_history {

// What the file holds of a metric: the value of rank 0 (a vector: of the first rank that gave it in that
// draw); mean, minimum, maximum and standard deviation over the ranks, the mean under the metric's own name; for what a
// program prints of rank 0: its value under the metric's own name, the four statistics (NAME_mean, ...), and the value
// of each rank.
enum class RankStatistics { kRankZero, kStatistics, kEachRank };

struct RankColumn {
  data::Metric metric;  // a vector (length > 0) with kRankZero only
  RankStatistics over = RankStatistics::kRankZero;
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
  std::vector<double> numbers = {};  // (rank, draw, number)
};

// What goes into the history for one draw. Names and values stay valid until the next call of Reduce, and as
// long as the gathered block.
struct ReducedDraw {
  std::vector<data::Scalar> scalars;
  std::vector<data::Vector> vectors;
};

class RankBlock {
 public:
  // InvalidArgument for a bad name, for one that comes twice, where a name that is made for statistics
  // ("dt_min") is a metric too, for statistics of a vector, and for a length that no vector has.
  static absl::StatusOr<RankBlock> Make(std::vector<RankColumn> columns);

  // InvalidArgument for a name that is no column's, or as many numbers as the column does not have; the draw
  // is then added without them.
  absl::Status AddDraw(absl::Span<const data::Scalar> scalars, absl::Span<const data::Vector> vectors = {});
  std::int64_t draws() const { return draws_; }
  // This rank's numbers (draw, number).
  void AppendNumbers(std::vector<double>& numbers) const;
  void Clear();

  // On the rank that writes: the metrics of the history, and its draws.
  std::vector<data::Metric> Metrics(int ranks) const;
  const ReducedDraw& Reduce(const GatheredBlock& block, std::int64_t draw);

 private:
  struct Names {
    std::string own, mean, minimum, maximum, deviation, per_rank;
  };
  explicit RankBlock(std::vector<RankColumn> columns) : columns_(std::move(columns)) {}
  absl::Status Place(absl::string_view name, absl::Span<const double> values, absl::Span<double> draw) const;

  std::vector<RankColumn> columns_;
  std::vector<Names> names_;                             // by column
  std::vector<std::int64_t> first_;                      // number of each column in a draw
  std::int64_t width_ = 0;                               // numbers of a draw
  absl::flat_hash_map<std::string, std::size_t> index_;  // of columns, by name
  std::int64_t draws_ = 0;
  std::vector<double> numbers_;  // (draw, number)

  ReducedDraw reduced_;
  std::vector<double> of_ranks_;
  std::vector<std::vector<double>> per_rank_;
};

}  // namespace plait::rank_history

#endif  // PLAIT_TOOLS_RANK_HISTORY_RANK_BLOCK_H_
