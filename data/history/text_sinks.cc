// CSV and JSON lines.
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/history/append_file.h"
#include "data/history/sinks.h"

namespace plait::data {
namespace {

// The shortest decimal that reads back as the same double; whole numbers without exponent (pandas does not read
// 1e+05 as an integer); "nan" without a sign.
void AppendNumber(double value, std::string& out) {
  char text[32];
  if (IsWhole(value) && !(value == 0 && std::signbit(value))) {
    absl::StrAppend(&out, static_cast<std::int64_t>(value));
    return;
  }
  out.append(
      text, std::to_chars(text, text + sizeof(text), std::isnan(value) ? std::abs(value) : value).ptr - text);
}

class CsvSink : public HistorySink {
 public:
  explicit CsvSink(AppendFile file) : file_(std::move(file)) {}
  absl::Status Declare(const Metric& metric) override;
  absl::Status Add(const Draw& draw) override;
  absl::Status Close(bool complete) override;
  void Discard() override { unlink(file_.path().c_str()); }

 private:
  struct Columns {
    Metric metric;
    std::size_t first;
  };
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

absl::Status CsvSink::Declare(const Metric& metric) {
  index_[metric.name] = metrics_.size();
  metrics_.push_back({metric, columns_});
  columns_ += NumbersOf(metric);
  cells_.resize(columns_);
  return absl::OkStatus();
}

std::string CsvSink::Header() const {
  std::string names = "draw";
  for (const Columns& columns : metrics_) {
    for (std::size_t i = 0; i < std::size_t(NumbersOf(columns.metric)); ++i) {
      absl::StrAppend(&names, ",", columns.metric.name);
      if (columns.metric.length > 0) absl::StrAppend(&names, "[", i, "]");
    }
  }
  return names + "\n";
}

absl::Status CsvSink::WriteHeader() {
  PLAIT_RETURN_IF_ERROR(file_.Write(Header()));
  has_header_ = true;
  written_columns_ = columns_;
  return absl::OkStatus();
}

// Rewrites the file with the current header, and empty cells appended to its rows.
absl::Status CsvSink::Widen() {
  const std::string more(columns_ - written_columns_, ',');
  PLAIT_RETURN_IF_ERROR(WriteAtomically(file_.path(), file_.size(), [&](const std::string& partial) {
    std::ifstream in(file_.path());
    std::ofstream out(partial);
    out << Header();
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) out << line << more << "\n";
    out.close();
    if (in.eof() && out.good()) return absl::OkStatus();
    return absl::ErrnoToStatus(errno == 0 ? EIO : errno, "cannot be given more columns");
  }));
  written_columns_ = columns_;
  PLAIT_ASSIGN_OR_RETURN(file_, AppendFile::OpenAtEnd(file_.path()));
  return absl::OkStatus();
}

void CsvSink::Place(absl::string_view name, absl::Span<const double> values) {
  std::size_t column = metrics_[index_.at(name)].first;
  for (const double value : values) {
    cells_[column].clear();
    AppendNumber(value, cells_[column++]);
  }
}

absl::Status CsvSink::Add(const Draw& draw) {
  if (!has_header_) PLAIT_RETURN_IF_ERROR(WriteHeader());
  if (written_columns_ < columns_) PLAIT_RETURN_IF_ERROR(Widen());
  for (std::string& cell : cells_) cell.clear();
  for (const Scalar& scalar : draw.scalars) Place(scalar.name, absl::MakeConstSpan(&scalar.value, 1));
  for (const Vector& vector : draw.vectors) Place(vector.name, vector.values);
  row_.clear();
  absl::StrAppend(&row_, draw.draw);
  for (const std::string& cell : cells_) absl::StrAppend(&row_, ",", cell);
  row_.push_back('\n');
  return file_.Write(row_);
}

absl::Status CsvSink::Close(bool /*complete*/) { return has_header_ ? absl::OkStatus() : WriteHeader(); }

void AppendJson(double value, std::string& out) {
  if (std::isfinite(value)) {
    AppendNumber(value, out);
  } else {
    out += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
}

class JsonLinesSink : public HistorySink {
 public:
  explicit JsonLinesSink(AppendFile file) : file_(std::move(file)) {}
  absl::Status Add(const Draw& draw) override;
  void Discard() override { unlink(file_.path().c_str()); }

 private:
  AppendFile file_;
  std::string line_;
};

// Names need no escapes: CheckMetricName has seen them.
absl::Status JsonLinesSink::Add(const Draw& draw) {
  line_.clear();
  absl::StrAppend(&line_, "{\"draw\":", draw.draw);
  for (const Scalar& scalar : draw.scalars) {
    absl::StrAppend(&line_, ",\"", scalar.name, "\":");
    AppendJson(scalar.value, line_);
  }
  for (const Vector& vector : draw.vectors) {
    absl::StrAppend(&line_, ",\"", vector.name, "\":[");
    for (std::size_t i = 0; i < vector.values.size(); ++i) {
      if (i > 0) line_.push_back(',');
      AppendJson(vector.values[i], line_);
    }
    line_.push_back(']');
  }
  line_ += "}\n";
  return file_.Write(line_);
}

template <typename Sink>
absl::StatusOr<std::unique_ptr<HistorySink>> MakeSink(const std::string& path, bool move_old_aside) {
  PLAIT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Create(path, move_old_aside));
  return std::make_unique<Sink>(std::move(file));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HistorySink>> MakeCsvSink(const std::string& path, bool move_old_aside) {
  return MakeSink<CsvSink>(path, move_old_aside);
}

absl::StatusOr<std::unique_ptr<HistorySink>> MakeJsonLinesSink(const std::string& path, bool move_old_aside) {
  return MakeSink<JsonLinesSink>(path, move_old_aside);
}

}  // namespace plait::data
