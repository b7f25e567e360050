// A run's history over all ranks: every rank gives its numbers in every step, one file holds their
// statistics.
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
// The file (data/history/history.h, written by rank 0) then holds `iter` as rank 0 gave it, `loss` (mean over
// ranks), loss_min, loss_max, loss_std, `dt` as rank 0 gave it, dt_mean, dt_min, dt_max, dt_std, dt_per_rank (draw,
// rank), and load (draw, expert) as the first rank gave it that did in that draw (stages of a pipeline have other layers).
// std is that of the population of ranks (divided by their number). A metric that some ranks lack in a step
// counts over those that gave it, and is NaN in dt_per_rank for the others; NaN or an infinity that a rank
// did give goes through the arithmetic, so that it shows in all four statistics.
//
// Numbers stay on their rank for `gather_every` steps, then travel in one all-gather, in a group of its own
// named "history". In between a step costs less than a microsecond and no message. A kill loses at most the
// steps since the last all-gather.
//
// Every rank calls everything here, in the same order, Append in every step. Errors (a full disk on rank 0,
// say) come out on all ranks in the same call, so that they take the same decision.
#ifndef PLAIT_TOOLS_RANK_HISTORY_RANK_HISTORY_H_
#define PLAIT_TOOLS_RANK_HISTORY_RANK_HISTORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "data/history/history.h"
#include "tools/rank_history/rank_block.h"

namespace plait::rank_history {

// Beside the history, with the same draws; empty: none. A resumed run moves the text files of the run
// before aside (FILE.1) and adds a file to TensorBoard's folder. An export that fails stops; Close tells.
struct Exports {
  std::string csv = {};          // file; data/history/sinks.h
  std::string json_lines = {};   // file
  std::string tensorboard = {};  // folder; data/history/sinks.h
};

struct RankHistoryOptions {
  std::string path;
  std::map<std::string, std::string> attributes = {};  // of rank 0
  std::vector<RankColumn> metrics = {};                // the same on all ranks
  int gather_every = 10;                               // steps per all-gather
  std::int64_t resume_draws = -1;                      // >= 0: goes on with the file after so many draws
  Exports exports = {};
};

class RankHistory {
 public:
  // Collective. Errors as those of RankBlock::Make and data::History::Create, on all ranks.
  static absl::StatusOr<std::unique_ptr<RankHistory>> Create(const comm::Communicator& world,
                                                             const RankHistoryOptions& options);

  // Does not communicate: what has not been gathered is lost, and the run counts as unfinished.
  ~RankHistory();
  RankHistory(const RankHistory&) = delete;
  RankHistory& operator=(const RankHistory&) = delete;

  // One step. Collective in every gather_every-th call, local otherwise. An error of rank 0's file is told
  // in the next collective call, on all ranks; the history then takes nothing more and goes on telling it. So
  // is the error of a rank that gives what is no metric, or a vector of another length.
  absl::Status Append(absl::Span<const data::Scalar> scalars, absl::Span<const data::Vector> vectors = {});

  // Collective. Gathers what is left and brings the file up to date.
  absl::Status Flush();
  // Collective. The same, and the file is complete. Append must not follow.
  absl::Status Close();

  // Seconds that this rank has spent in here, for a report of the cost.
  double seconds() const { return seconds_; }
  // In the file and on their way to it: a resumed run counts on from resume_draws.
  std::int64_t draws() const { return draws_; }

 private:
  RankHistory(comm::Communicator group, RankBlock block, const RankHistoryOptions& options);
  absl::Status Open(const RankHistoryOptions& options);
  absl::Status Gather();
  void WriteDraws(const GatheredBlock& block);

  comm::Communicator group_;
  int gather_every_;
  RankBlock block_;
  std::unique_ptr<data::History> history_;  // on rank 0
  absl::Status own_;                        // this rank's first error, until all ranks are told
  absl::Status agreed_;                     // what every rank was told
  std::int64_t draws_ = 0;
  double seconds_ = 0;
};

}  // namespace plait::rank_history

#endif  // PLAIT_TOOLS_RANK_HISTORY_RANK_HISTORY_H_
