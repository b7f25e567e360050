// Named scalars and small vectors per step of a run, in a netCDF-4 file that xarray, ncdump and h5py open.
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
// is a variable (draw, dimension), with its own dimension scale (0, 1, ... length - 1), which vectors of the
// same length may share. A draw that does not give a metric, or precedes its first value, has NaN (integers:
// _FillValue, which xarray shows as NaN); NaN and infinities that are given are kept.
//
// A killed process loses nothing: Append writes to FILE.journal first, and FILE is only ever replaced
// atomically by a copy with the new draws, so that it can be opened at any time, also while the run is
// writing. Commits take at most about 2 % of the time and happen at most every `commit_seconds`; draws that
// FILE lacks after a kill are added by Recover or Resume. Memory does not grow with the number of draws.
//
// One process writes a history. Local, no communication.
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
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "data/history/journal.h"
#include "data/history/metric.h"
#include "data/history/sinks.h"

namespace plait::data {

struct HistoryOptions {
  // Root attributes that describe the run: RunAttributes (run_attributes.h).
  std::map<std::string, std::string> attributes = {};
  // An existing file of this name: AlreadyExists (CheckFree), or if true it is renamed (SetAside).
  bool move_old_aside = false;
  double commit_seconds = 5;  // least time between two commits by Append
};

class History {
 public:
  // AlreadyExists if there is a file of this name, or the journal of a killed run: an old run is never appended to
  // silently.
  static absl::Status CheckFree(const std::string& path);
  // Renames an existing file, with the draws of its journal, to FILE.1, FILE.2, ... and returns that name; empty if
  // there is none. FailedPrecondition if another process writes it; DataLoss if it has a journal and is not a history.
  static absl::StatusOr<std::string> SetAside(const std::string& path);

  // Creates a history and its file. Errors of CheckFree, or with `move_old_aside` of SetAside; FailedPrecondition if
  // another process writes it.
  static absl::StatusOr<std::unique_ptr<History>> Create(const std::string& path,
                                                         const HistoryOptions& options);

  // Continues an existing history after its first `draws` draws (a number that the checkpoint stores); later
  // ones are removed. Missing draws (lost in a power failure) become NaN. Sets the attributes resumed_at_draw,
  // resumed_at_draws; of the attributes `started` becomes `resumed`, as the run's start stays.
  // NotFound; DataLoss if the file is damaged or not a history; FailedPrecondition if another process writes it.
  static absl::StatusOr<std::unique_ptr<History>> Resume(const std::string& path, std::int64_t draws,
                                                         const HistoryOptions& options);

  // Adds the draws that a killed run left in its journal to the file. OK if there is no journal.
  static absl::Status Recover(const std::string& path);

  // Commits and removes the journal, ignoring errors. The run counts as unfinished: only Close sets the attribute
  // `complete` to 1.
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Sends every draw from now on to `sink`. A sink is dropped at its first error, which Close returns.
  void AddSink(std::unique_ptr<HistorySink> sink);

  // Describes a metric before its first value: units, names, length. Required for integers, and for vectors whose
  // dimension has a given name or is shared. No effect if the metric exists with that length. InvalidArgument for a
  // bad name, a length above kLongestVector, or one that differs from the existing length of the metric or its
  // dimension (also in the file of a resumed run).
  absl::Status Declare(const Metric& metric);

  // Appends one draw. InvalidArgument for a bad name, a metric given twice, an empty vector or one of another length
  // than before, a value that is not whole for an integer metric, or more than 16 MiB; ResourceExhausted or other errors
  // if the journal cannot be written. After an error the draw is not part of the history, which remains usable.
  // `time`: of the draw, for exports that keep it.
  absl::Status Append(absl::Span<const Scalar> scalars, absl::Span<const Vector> vectors = {},
                      absl::Time time = absl::Now());

  // Writes all draws to the file now.
  absl::Status Commit();

  // Commits, marks the run as complete, removes the journal and closes the sinks. Returns the first error of the
  // file, else of a sink. Append must not be called afterwards.
  absl::Status Close();

  std::int64_t draws() const { return draws_; }
  const std::vector<Metric>& metrics() const { return metrics_; }  // also those of a resumed file
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
