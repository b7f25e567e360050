// Exports of a history while it is written: CSV, JSON lines, TensorBoard.
//
//   PLAIT_ASSIGN_OR_RETURN(auto csv, MakeCsvSink("run.csv"));
//   history->AddSink(std::move(csv));
//
// Each draw is one unbuffered write, so that a killed process loses nothing and other programs can follow. A sink
// is dropped at its first error; the history continues and its Close returns that error. If the file of an earlier
// run exists, factories return AlreadyExists, or with `move_old_aside` rename it to FILE.1, FILE.2, ...
#ifndef PLAIT_DATA_HISTORY_SINKS_H_
#define PLAIT_DATA_HISTORY_SINKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/history/metric.h"

namespace plait::data {

class HistorySink {
 public:
  virtual ~HistorySink() = default;
  // Called before the first draw that has the metric.
  virtual absl::Status Declare(const Metric&) { return absl::OkStatus(); }
  virtual absl::Status Add(const Draw& draw) = 0;
  // The last call. `complete`: the run called History::Close.
  virtual absl::Status Close(bool /*complete*/) { return absl::OkStatus(); }
  // Instead of all others, where the run does not begin after all: removes the file that was made.
  virtual void Discard() {}
};

// Comma-separated values:
//
//   draw,loss,dt,dt_per_rank[0],dt_per_rank[1]
//   0,2.5,0.1,0.1,0.1
//   1,nan,,,
//
// A column per number, in the order of the metrics; units are in the history's own file. Numbers read back as the same
// doubles, whole numbers as integers; nan, inf and -inf are values, an empty cell is a metric that the draw does not
// give. A new metric adds columns on the right: the file is rewritten atomically, with empty cells in earlier rows.
absl::StatusOr<std::unique_ptr<HistorySink>> MakeCsvSink(const std::string& path,
                                                         bool move_old_aside = false);

// One JSON object per draw and line:
//
//   {"draw":0,"loss":2.5,"dt":0.1,"dt_per_rank":[0.1,0.1]}
//   {"draw":1,"loss":"NaN","dt":"-Infinity"}
//
// NaN and infinities are the strings "NaN", "Infinity" and "-Infinity", as in protobuf's JSON, which Python's
// float() and JavaScript's Number() parse. Numbers read back as the same doubles.
absl::StatusOr<std::unique_ptr<HistorySink>> MakeJsonLinesSink(const std::string& path,
                                                               bool move_old_aside = false);

struct TensorboardOptions {
  std::map<std::string, std::string> attributes = {};
  std::vector<std::pair<std::string, std::string>> hyperparameters = {};  // settings_line.h
  bool move_old_aside = false;
  std::int64_t resume_draws =
      -1;  // >= 0: the number of draws that are kept of the run that this one continues
};

// `tensorboard --logdir FOLDER`; needs no TensorFlow. Writes
// FOLDER/events.out.tfevents.<seconds>.<host>.<pid>, one event per draw:
//   metrics          scalars, float32 as TensorBoard stores them; NaN and infinities are kept
//   vectors          histograms of their finite values, in 30 buckets of equal width
//   attributes       a text named "run", as a table
//   hyperparameters  for the HPARAMS page, with the status success or failure; values that parse as numbers are
//                    numbers, "true", "True", "false" and "False" are bool
// TensorBoard takes all files of a folder for one run: for a folder that has event files, the result is AlreadyExists;
// with `move_old_aside` the folder is renamed, with `resume_draws` it gets another file, and TensorBoard leaves out later
// draws of the files before it. Creates the folder.
absl::StatusOr<std::unique_ptr<HistorySink>> MakeTensorboardSink(const std::string& folder,
                                                                 const TensorboardOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_SINKS_H_
