// A run's history over all ranks: every rank gives its numbers in every step, and one file holds statistics over ranks.
//
//   const RankHistoryOptions options = {
//       .path = "run.h5",
//       .attributes = data::RunAttributes(run),
//       .metrics = {{data::Count("iter", "step, from 0")},
//                   {{"loss", "1", "of a rank's samples"}, RankStatistics::kStatistics},
//                   {{"dt", "s", "time of a step"}, RankStatistics::kEachRank},
//                   {{.name = "load", .dimension = "expert", .length = 64}}}};
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<RankHistory> history, RankHistory::Create(world, options));
//   for (...) PLAIT_RETURN_IF_ERROR(history->Append({{"iter", i}, {"loss", loss}, {"dt", seconds}},
//                                                   {{"load", load}}));
//   PLAIT_RETURN_IF_ERROR(history->Close());
//
// The file (data/history/history.h, written by rank 0) then holds `iter` of rank 0, `loss` (mean over ranks), loss_min,
// loss_max, loss_std, `dt` of rank 0, dt_mean, dt_min, dt_max, dt_std, dt_per_rank (draw, rank), and load (draw,
// expert) of the first rank that gave it in that draw, as pipeline stages have different layers. std is the population
// standard deviation over ranks. Statistics are over the ranks that gave the metric in a step; dt_per_rank is NaN for
// the others. A NaN or an infinity that a rank gives propagates to the statistics.
//
// Numbers are buffered for `gather_every` steps and then exchanged in one all-gather, on a communicator of its own
// named "history". The other steps cost less than a microsecond and no message. A killed run loses at most the steps
// since the last all-gather. A run that is resumed on another number of ranks has its vectors over ranks beside the old
// ones: dt_per_rank_of_4 (draw, rank_of_4).
//
// Every rank must make the same calls in the same order, Append in every step. Errors, such as a full disk on rank 0,
// are returned on all ranks from the same call.
#ifndef PLAIT_TOOLS_RANK_HISTORY_RANK_HISTORY_H_
#define PLAIT_TOOLS_RANK_HISTORY_RANK_HISTORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "data/history/history.h"
#include "tools/rank_history/rank_block.h"

namespace plait::rank_history {

// Files written along with the history, with the same draws; empty: none. A resumed run renames the text files of the
// previous run (FILE.1) and adds a file to TensorBoard's directory. An export that fails stops; Close returns its
// error.
struct Exports {
  std::string csv = {};          // file; data/history/sinks.h
  std::string json_lines = {};   // file
  std::string tensorboard = {};  // folder; data/history/sinks.h
};

struct RankHistoryOptions {
  std::string path;
  std::map<std::string, std::string> attributes = {};  // of rank 0
  std::vector<RankColumn> metrics = {};                // the same on all ranks
  int gather_every = 10;                               // steps per all-gather, at least 1
  std::int64_t resume_draws = -1;                      // >= 0: continues the file after this many draws
  Exports exports = {};
};

class RankHistory {
 public:
  // Collective. Errors, the same on all ranks, of RankBlock::Make, data::History::Create or Resume, and the exports. If
  // an export or the history cannot be made, no new file is left, and a resumed history has all its draws.
  static absl::StatusOr<std::unique_ptr<RankHistory>> Create(const comm::Communicator& world,
                                                             const RankHistoryOptions& options);

  // Does not communicate. Without Close, numbers that were not gathered are lost and the history is marked incomplete.
  ~RankHistory();
  RankHistory(const RankHistory&) = delete;
  RankHistory& operator=(const RankHistory&) = delete;

  // Adds one step. Every gather_every-th call is collective, the others are local. Errors of rank 0's file, and
  // INVALID_ARGUMENT of a rank that gave an unknown metric or a wrong vector length, are returned from the next
  // collective call, on all ranks; from then on every call returns that error and records nothing.
  absl::Status Append(absl::Span<const data::Scalar> scalars, absl::Span<const data::Vector> vectors = {});

  // Collective. Gathers the remaining draws and brings the file up to date.
  absl::Status Flush();
  // Collective. Flushes and marks the history complete. Append must not follow.
  absl::Status Close();

  // Seconds that this rank has spent in Append, Flush and Close.
  double seconds() const { return seconds_; }
  // Number of draws so far, gathered or not; a resumed run starts at resume_draws.
  std::int64_t draws() const { return draws_; }

 private:
  RankHistory(comm::Communicator group, RankBlock block, const RankHistoryOptions& options);
  absl::Status Open(const RankHistoryOptions& options);
  absl::Status Gather();
  void WriteDraws(const GatheredBlock& block);

  comm::Communicator group_;
  int gather_every_;
  RankBlock block_;
  std::vector<absl::Time> times_;           // of the draws of block_
  std::unique_ptr<data::History> history_;  // on rank 0
  absl::Status own_;                        // this rank's first error, until all ranks are told
  absl::Status agreed_;                     // what every rank was told
  std::int64_t draws_ = 0;
  double seconds_ = 0;
};

}  // namespace plait::rank_history

#endif  // PLAIT_TOOLS_RANK_HISTORY_RANK_HISTORY_H_
