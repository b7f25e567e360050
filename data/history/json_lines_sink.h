// The draws of a history as JSON lines: an object per draw, a line each.
//
//   {"draw":0,"loss":2.5,"dt":0.1,"dt_per_rank":[0.1,0.1]}
//   {"draw":1,"loss":"NaN","dt":"-Infinity"}
//
// JSON has no NaN and no infinities: they are the texts "NaN", "Infinity" and "-Infinity", as in protobuf's
// JSON, which Python's float() and JavaScript's Number() turn into the value. So every line is valid JSON,
// and a value that is not a number differs from a metric that the draw does not have. Numbers read back as
// the same doubles.
#ifndef PLAIT_DATA_HISTORY_JSON_LINES_SINK_H_
#define PLAIT_DATA_HISTORY_JSON_LINES_SINK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/history/append_file.h"
#include "data/history/history_sink.h"

namespace plait::data {

class JsonLinesSink : public HistorySink {
 public:
  static absl::StatusOr<std::unique_ptr<JsonLinesSink>> Create(const std::string& path,
                                                               const SinkOptions& options);

  absl::Status Declare(const Metric&) override { return absl::OkStatus(); }
  absl::Status Add(const Draw& draw) override;
  absl::Status Close(bool /*complete*/) override { return absl::OkStatus(); }

 private:
  explicit JsonLinesSink(AppendFile file) : file_(std::move(file)) {}

  AppendFile file_;
  std::string line_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_JSON_LINES_SINK_H_
