// A run's history for reading: metrics with their units, values column by column, the run's attributes.
//
//   PLAIT_ASSIGN_OR_RETURN(const HistoryTable table, HistoryTable::Open("run.h5"));
//   for (const TableMetric& metric : table.metrics()) {
//     PLAIT_ASSIGN_OR_RETURN(const std::vector<double> values, table.Column(metric.name));
//     ...                               // values[draw]; NaN: not given, or given as NaN
//   }
//
// Reads what History writes, and other HDF5 files of metrics per step, written by xarray, netCDF-4 or h5py: with
// or without a coordinate, integers and floating-point numbers of any width, packed or not (scale_factor, add_offset;
// _FillValue and missing_value read as NaN), in groups ("loss/mean", up to four levels) or not. Every one-dimensional
// array of numbers that is not a dimension scale is a metric, every two-dimensional one a vector per draw.
//
// One coordinate numbers the draws (DrawNumbers). Values along another coordinate, as those of a metric per evaluation,
// are at the draws with the same numbers; an array of another program for which this fails is left out (left_out()).
// Without coordinates, shorter arrays are padded with NaN.
//
// Nothing is modified. Draws of a running or killed run are also read from its journal (journal_draws()). The table
// shows the state at Open, also if the run replaces the file later.
//
// Memory: one column at a time, and the journal's draws. Local.
#ifndef PLAIT_DATA_HISTORY_HISTORY_TABLE_H_
#define PLAIT_DATA_HISTORY_HISTORY_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/hdf5/file.h"
#include "data/history/metric.h"

namespace plait::data {

struct TableMetric {
  std::string name;
  std::string units;       // "" where the file gives none
  std::string long_name;   // likewise
  std::string statistic;   // "mean over ranks", ...; likewise
  std::string dimension;   // of a vector, such as "rank"; "" for a scalar or where the file names none
  std::int64_t width = 1;  // values per draw
  bool is_vector = false;
  std::string coordinate = "";  // that numbers its values, where it is not that of the draws: "eval_step"
};

// An array of numbers of which nothing tells at which draws its values are.
struct LeftOutArray {
  std::string name;
  std::string reason;  // "its coordinate eval_step has 1000, which step, that of the draws, has not"
};

class HistoryTable {
 public:
  // NotFound: no such file. DataLoss: not HDF5, damaged, of a newer format version, or without any array of
  // numbers. FailedPrecondition: no draws. Each is one line that begins with the path.
  static absl::StatusOr<HistoryTable> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  std::int64_t draws() const { return draws_; }
  // How many of draws() are in the journal only.
  std::int64_t journal_draws() const { return draws_ - file_draws_; }
  // True where History wrote the file, false for one of another program.
  bool is_history() const { return is_history_; }
  // Whether the run closed its history; always true for a file of another program.
  bool complete() const { return complete_; }
  // In the order of the file.
  const std::vector<TableMetric>& metrics() const { return metrics_; }
  const TableMetric* Find(const std::string& name) const;
  const std::vector<LeftOutArray>& left_out() const { return left_out_; }

  // The run's attributes as text, in the order of the file; those of the file format are left out.
  const std::vector<std::pair<std::string, std::string>>& attributes() const { return attributes_; }
  // "" where there is none.
  std::string Attribute(const std::string& name) const;

  // The number of each draw: the coordinate `draw`, else the dimension scale of the longest array that has one
  // ("step", say), else 0, 1, ... Draws beyond the coordinate, as those of the journal, have their index.
  absl::StatusOr<std::vector<double>> DrawNumbers() const;

  // Returns the draws() values of a scalar metric, or of entry `entry` of a vector. NotFound: no such metric;
  // InvalidArgument: no such entry.
  absl::StatusOr<std::vector<double>> Column(const std::string& name, std::int64_t entry = 0) const;

  // Returns the values of draws [first, first + count), row-major (draw, entry). NotFound: no such metric;
  // InvalidArgument: no such draws; ResourceExhausted: more than 2^30 values.
  absl::StatusOr<std::vector<double>> Rows(const std::string& name, std::int64_t first,
                                           std::int64_t count) const;

 private:
  // A range of a vector's entries.
  struct Entries {
    std::int64_t first, count;
  };
  explicit HistoryTable(File file) : file_(std::move(file)) {}
  absl::Status Load();
  void ReadAttributes();
  absl::Status ReadMetrics();
  absl::Status ReadMetric(const std::string& name);
  std::string PlaceRows(const std::string& scale, std::int64_t rows, TableMetric& metric);
  std::string FindPlaces(const std::string& scale);
  absl::StatusOr<std::vector<double>> Coordinate(const std::string& name) const;
  bool ReadJournal();
  bool AddToTail(const Metric& metric, absl::Span<const double> values);
  absl::Status ReadDraws(const TableMetric& metric, std::int64_t first, std::int64_t draws, Entries entries,
                         absl::Span<double> out) const;
  absl::Status ReadStored(const std::string& name, std::int64_t first, std::int64_t rows, Entries entries,
                          absl::Span<double> out) const;

  File file_;
  bool is_history_ = false;
  bool complete_ = true;
  std::string dimension_;   // the dimension scale of the draws, with or without numbers; or ""
  std::string coordinate_;  // the array that numbers the draws; "" where there is none
  std::int64_t draws_ = 0;
  std::int64_t file_draws_ = 0;
  std::vector<TableMetric> metrics_;
  std::vector<LeftOutArray> left_out_;
  std::map<std::string, std::vector<std::int64_t>> places_;  // ascending draws of the values, by coordinate
  std::map<std::string, std::int64_t> stored_rows_;          // without metrics that only the journal knows
  std::vector<std::pair<std::string, std::string>> attributes_;
  std::map<std::string, std::vector<double>> tail_;  // rows of the journal's draws, by metric
};

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_HISTORY_TABLE_H_
