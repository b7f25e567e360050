// Buffers a rank's numbers until ranks exchange them, then computes statistics over ranks: the arithmetic of
// RankHistory, without communication.
//
// All ranks have the same columns, one per metric, of one number or of the numbers of a vector. A rank's numbers of
// several draws are a block of doubles (draw, number), the same size on all ranks.
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

// What the file holds of a metric NAME.
// kRankZero: the value of rank 0, or a vector of the first rank that gave it in that draw.
// kStatistics: mean (as NAME), NAME_min, NAME_max and NAME_std over ranks.
// kEachRank: the value of rank 0 (as NAME), NAME_mean, NAME_min, NAME_max, NAME_std, and the vector NAME_per_rank.
enum class RankStatistics { kRankZero, kStatistics, kEachRank };

struct RankColumn {
  data::Metric metric;  // a vector (length > 0) with kRankZero only
  RankStatistics over = RankStatistics::kRankZero;
};

// Marks a number that was not given: a NaN with a special payload, so that it differs from a NaN that was given. Its
// bits must be sent unchanged.
double NotGiven();
bool IsGiven(double value);

struct Statistics {
  double mean, minimum, maximum, deviation;
};
// Statistics over `values`, which must not be empty. Population standard deviation, computed in two passes.
Statistics StatisticsOver(absl::Span<const double> values);

// The blocks of all ranks, by rank.
struct GatheredBlock {
  int ranks = 1;
  std::int64_t draws = 0;
  std::vector<double> numbers = {};  // (rank, draw, number)
};

// The scalars and vectors of one draw of the history. Names and values are valid until the next call of Reduce, and as
// long as the gathered block lives.
struct ReducedDraw {
  std::vector<data::Scalar> scalars;
  std::vector<data::Vector> vectors;
};

class RankBlock {
 public:
  // INVALID_ARGUMENT for an invalid or duplicate name, for a metric that has the name of another's statistic ("dt_min")
  // or is called "rank", for statistics of a vector, and for an invalid vector length.
  static absl::StatusOr<RankBlock> Make(std::vector<RankColumn> columns);

  // Adds a draw. INVALID_ARGUMENT for an unknown name or a wrong number of values; the draw is then added without them.
  absl::Status AddDraw(absl::Span<const data::Scalar> scalars, absl::Span<const data::Vector> vectors = {});
  std::int64_t draws() const { return draws_; }
  // Appends this rank's numbers, (draw, number).
  void AppendNumbers(std::vector<double>& numbers) const;
  void Clear();

  // On the rank that writes, before Metrics and Reduce: a vector NAME_per_rank, or any along `rank`, of another length in
  // `held`, the metrics of a resumed file, stays as it is; the new one is NAME_per_rank_of_N, along rank_of_N.
  void KeepApart(absl::Span<const data::Metric> held, int ranks);
  // On the rank that writes: the metrics of the history, and the values of one draw.
  std::vector<data::Metric> Metrics(int ranks) const;
  const ReducedDraw& Reduce(const GatheredBlock& block, std::int64_t draw);

 private:
  struct Names {
    std::string own, mean, minimum, maximum, deviation, per_rank;
    std::string rank_dimension;
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
