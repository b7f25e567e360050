// The draws of a history as comma-separated values.
//
//   draw,loss,dt,dt_per_rank[0],dt_per_rank[1]
//   # units: ,1,s,s,s
//   0,2.5,0.1,0.1,0.1
//   1,nan,,,
//
// The header has a column per number, in the order in which the metrics came; the units stand below it in a
// comment (pandas: read_csv(path, comment="#")). Numbers read back as the same doubles; nan, inf and -inf
// are values, an empty cell says that the draw did not have the metric.
//
// A metric that comes late gets a column at the right: the file is written anew under another name, with
// empty cells in the rows so far, and renamed. So every row always has all columns, at the price of a copy
// for each draw that brings new metrics. A vector keeps the columns of its first length.
#ifndef PLAIT_DATA_HISTORY_CSV_SINK_H_
#define PLAIT_DATA_HISTORY_CSV_SINK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "data/history/append_file.h"
#include "data/history/history_sink.h"

namespace plait::data {

class CsvSink : public HistorySink {
 public:
  static absl::StatusOr<std::unique_ptr<CsvSink>> Create(const std::string& path, const SinkOptions& options);

  absl::Status Declare(const Metric& metric) override;
  absl::Status Add(const Draw& draw) override;
  absl::Status Close(bool complete) override;

 private:
  struct Columns {
    Metric metric;
    std::size_t first;
  };
  explicit CsvSink(AppendFile file) : file_(std::move(file)) {}
  absl::Status WriteHeader();
  absl::Status Widen();
  std::string Header() const;
  void Place(absl::string_view name, absl::Span<const double> values);

  AppendFile file_;
  std::vector<Columns> metrics_;
  absl::flat_hash_map<std::string, std::size_t> index_;  // into metrics_
  std::size_t columns_ = 0;
  std::size_t written_columns_ = 0;  // of the file's header
  bool has_header_ = false;
  std::vector<std::string> cells_;
  std::string row_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_CSV_SINK_H_
