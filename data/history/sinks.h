// What a history feeds with its draws beside its own file: CSV, JSON lines, TensorBoard.
//
//   PLAIT_ASSIGN_OR_RETURN(auto csv, MakeCsvSink("run.csv"));
//   history->AddSink(std::move(csv));
//
// Each draw is one write without a buffer, so that a kill loses nothing and others can read along. A sink
// that fails takes nothing more; the history continues and Close returns the error. Factories return
// AlreadyExists if the file of an earlier run is there, or with `move_old_aside` rename it to FILE.1, FILE.2,
// ...
#ifndef PLAIT_DATA_HISTORY_SINKS_H_
#define PLAIT_DATA_HISTORY_SINKS_H_

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
  // The last call. `complete`: the run finished.
  virtual absl::Status Close(bool /*complete*/) { return absl::OkStatus(); }
};

// Comma-separated values:
//
//   draw,loss,dt,dt_per_rank[0],dt_per_rank[1]
//   0,2.5,0.1,0.1,0.1
//   1,nan,,,
//
// A column per number, in the order of the metrics; units are in the history's own file. Numbers read back as the same
// doubles, whole ones as integers; nan, inf and -inf are values, an empty cell is a metric that the draw does not have. A new metric gets columns at the right: the file is rewritten
// atomically, with empty cells in earlier rows. A vector keeps the columns of its first length.
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
  bool resume = false;
};

// `tensorboard --logdir FOLDER`; needs no TensorFlow. Writes
// FOLDER/events.out.tfevents.<seconds>.<host>.<pid>, one event per draw:
//   metrics          scalars, float32 as TensorBoard stores them; NaN and infinities are kept
//   vectors          histograms of their finite values, in 30 buckets of equal width
//   attributes       a text named "run", as a table
//   hyperparameters  for the HPARAMS page, with the end of the run as success or failure; values that parse
//                    as numbers are numbers, "true" and "false" are bool
// TensorBoard takes all files of a folder for one run: a folder with event files is refused, moved aside, or,
// for a resumed run, gets another file. Makes the folder.
absl::StatusOr<std::unique_ptr<HistorySink>> MakeTensorboardSink(const std::string& folder,
                                                                 const TensorboardOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_SINKS_H_
