// Named scalars per step of a run, in a netCDF-4 file that xarray, ncdump and h5py open.
//
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<History> history,
//                          History::Create("run.h5", {.attributes = RunAttributes(run)}));
//   PLAIT_RETURN_IF_ERROR(history->Declare({"dt", "s", "time per batch"}));        // optional
//   for (...) PLAIT_RETURN_IF_ERROR(history->Append({{"loss", loss}, {"dt", seconds}}, {{"norms", norms}}));
//   PLAIT_RETURN_IF_ERROR(history->Close());
//
//   >>> xarray.open_dataset("run.h5").loss.plot()
//
// File: a dimension scale `draw` (0, 1, 2, ...), one variable per metric along it, float64 or int64, with `units`,
// `long_name` and `statistic`, the run's attributes on the root (run_attributes.h). A small vector per draw
// is a variable (draw, dimension), with a dimension scale of its own (0, 1, ... length - 1) that vectors of
// the same length may share. A metric that appears late is NaN before, one that is left out of a draw is
// NaN there (of integers: _FillValue, which xarray shows as NaN); NaN and infinities given are kept.
//
// A killed process loses nothing: every Append goes to FILE.journal first, and FILE itself is only ever
// replaced whole (a copy with the new draws, renamed over it), so that it opens at any moment, also for
// readers while the run goes on. Bringing FILE up to date takes at most about 2 % of the time and happens
// at most every `commit_seconds`; what the file lacks after a kill is added by Recover or Resume. Memory
// does not grow with the number of draws.
//
// One process writes a history; local, no messages.
#ifndef PLAIT_DATA_HISTORY_HISTORY_H_
#define PLAIT_DATA_HISTORY_HISTORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "data/history/journal.h"
#include "data/history/metric.h"
#include "data/history/sinks.h"

namespace plait::data {

struct HistoryOptions {
  // Of the run: command, host, version, seed, configuration.
  std::map<std::string, std::string> attributes = {};
  // A file of this name that is there: an error, or renamed to FILE.1, FILE.2, ... out of the way.
  bool move_old_aside = false;
  double commit_seconds = 5;
};

class History {
 public:
  // A new history; its file is there on return. AlreadyExists where there is a file of this name (or the
  // journal of a killed run) and it is not to be moved: an old run is never appended to silently.
  // FailedPrecondition where another process writes it.
  static absl::StatusOr<std::unique_ptr<History>> Create(const std::string& path,
                                                         const HistoryOptions& options);

  // Goes on with an old one after its first `draws` draws, as a checkpoint knows them; later ones are cut
  // off. Draws that were lost (with the power, say) are NaN. The file notes it: attribute resumed_at_draw.
  static absl::StatusOr<std::unique_ptr<History>> Resume(const std::string& path, std::int64_t draws,
                                                         const HistoryOptions& options);

  // Brings the draws that a killed run left in its journal into the file. Nothing to do is no error.
  static absl::Status Recover(const std::string& path);

  // As Commit, errors ignored. The run counts as unfinished: only Close sets the attribute `complete` to 1.
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Fed with every draw from now on. Its errors do not disturb the history: Close tells the first one.
  void AddSink(std::unique_ptr<HistorySink> sink);

  // Words and length of a metric, before its first value; needed for vectors whose dimension is to have a
  // name or to be shared. InvalidArgument for a bad name, a length above kLongestVector, or a length other
  // than that which the metric or its dimension has already (also in the file of a resumed run).
  absl::Status Declare(const Metric& metric);

  // One draw. InvalidArgument for a bad name, a vector of another length than before, or a fraction for an integer; ResourceExhausted
  // or others where the journal cannot be written. After an error the draw is not taken and the history can
  // go on.
  absl::Status Append(absl::Span<const Scalar> scalars, absl::Span<const Vector> vectors = {});

  // Brings the file up to date now.
  absl::Status Commit();

  // Commit, mark as complete, remove the journal, close the sinks. Append must not follow.
  absl::Status Close();

  std::int64_t draws() const { return draws_; }
  const std::string& path() const { return path_; }

 private:
  History(std::string path, const HistoryOptions& options, JournalWriter journal);
  absl::StatusOr<std::uint32_t> IdOf(absl::string_view name, std::int64_t length);
  absl::Status CheckShape(const Metric& metric) const;
  absl::Status CheckValues(absl::Span<const Scalar> scalars, absl::Span<const Vector> vectors) const;
  absl::Status WriteToJournal(absl::Span<const Scalar> scalars, absl::Span<const Vector> vectors);
  void TellSinks(const std::function<absl::Status(HistorySink&)>& tell);
  absl::Status Load();
  absl::Status CommitIfDue();

  std::string path_;
  absl::Duration commit_interval_;
  JournalWriter journal_;
  std::vector<Metric> metrics_;
  absl::flat_hash_map<std::string, std::uint32_t> ids_;
  absl::flat_hash_map<std::string, std::int64_t> dimensions_;  // length by name
  std::vector<std::uint32_t> ids_of_draw_;
  std::vector<std::unique_ptr<HistorySink>> sinks_;
  absl::Status sink_status_;
  std::int64_t draws_ = 0;
  std::int64_t committed_draws_ = 0;
  absl::Time next_commit_;
  bool open_ = true;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_HISTORY_H_
