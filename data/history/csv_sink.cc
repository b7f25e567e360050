#include "data/history/csv_sink.h"

#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/history/number_text.h"

namespace plait::data {
namespace {

constexpr char kUnits[] = "# units: ";

// RFC 4180: in quotes where it has to be; a line break would end the comment.
std::string Cell(const std::string& text) {
  std::string line = absl::StrReplaceAll(text, {{"\n", " "}, {"\r", " "}});
  if (line.find_first_of(",\"") == std::string::npos) return line;
  return absl::StrCat("\"", absl::StrReplaceAll(line, {{"\"", "\"\""}}), "\"");
}

std::size_t NumbersOf(const Metric& metric) { return metric.length == 0 ? 1 : metric.length; }

}  // namespace

absl::StatusOr<std::unique_ptr<CsvSink>> CsvSink::Create(const std::string& path,
                                                         const SinkOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Create(path, options.move_old_aside));
  return std::unique_ptr<CsvSink>(new CsvSink(std::move(file)));
}

absl::Status CsvSink::Declare(const Metric& metric) {
  index_[metric.name] = metrics_.size();
  metrics_.push_back({metric, columns_});
  columns_ += NumbersOf(metric);
  cells_.resize(columns_);
  return absl::OkStatus();
}

std::string CsvSink::Header() const {
  std::string names = "draw", units = kUnits;
  for (const Columns& columns : metrics_) {
    for (std::size_t i = 0; i < NumbersOf(columns.metric); ++i) {
      absl::StrAppend(&names, ",", columns.metric.name);
      if (columns.metric.length > 0) absl::StrAppend(&names, "[", i, "]");
      absl::StrAppend(&units, ",", Cell(columns.metric.units));
    }
  }
  return absl::StrCat(names, "\n", units, "\n");
}

absl::Status CsvSink::WriteHeader() {
  PLAIT_RETURN_IF_ERROR(file_.Write(Header()));
  has_header_ = true;
  written_columns_ = columns_;
  return absl::OkStatus();
}

// The file with the header of now, and empty cells at the end of its rows.
absl::Status CsvSink::Widen() {
  const std::string more(columns_ - written_columns_, ',');
  PLAIT_RETURN_IF_ERROR(WriteAtomically(file_.path(), file_.size(), [&](const std::string& partial) {
    std::ifstream in(file_.path());
    std::ofstream out(partial);
    out << Header();
    std::string line;
    std::getline(in, line);
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

}  // namespace plait::data
