// What is fed with the draws of a history beside its file: csv_sink.h, json_lines_sink.h,
// tensorboard_sink.h.
//
//   PLAIT_ASSIGN_OR_RETURN(auto csv, CsvSink::Create("run.csv", {}));
//   history->AddSink(std::move(csv));
//
// Each draw is on its way to the disk when Add returns (one write, no buffer), so that a kill loses nothing
// and others can read along. A sink that fails takes nothing more; the history goes on and tells at Close.
#ifndef PLAIT_DATA_HISTORY_HISTORY_SINK_H_
#define PLAIT_DATA_HISTORY_HISTORY_SINK_H_

#include "absl/status/status.h"
#include "data/history/metric.h"

namespace plait::data {

class HistorySink {
 public:
  virtual ~HistorySink() = default;
  // Before the first draw that has it.
  virtual absl::Status Declare(const Metric& metric) = 0;
  virtual absl::Status Add(const Draw& draw) = 0;
  // Nothing comes after it. `complete`: the run ended as it should.
  virtual absl::Status Close(bool complete) = 0;
};

struct SinkOptions {
  // A file of this name that is there: an error (AlreadyExists), or renamed to FILE.1, FILE.2, ...
  bool move_old_aside = false;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_HISTORY_SINK_H_
