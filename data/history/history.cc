#include "data/history/history.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/hdf5/file_image.h"
#include "data/history/append_file.h"
#include "data/history/history_file.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

// Applies `edit` to a copy, which then replaces the file. Through a FileImage, as HDF5 can crash after a failed write.
absl::Status EditCopy(const std::string& path, const std::function<absl::Status(File&)>& edit) {
  std::error_code ignored;
  const std::int64_t bytes = fs::file_size(path, ignored);
  return WriteAtomically(path, bytes, [&](const std::string& partial) -> absl::Status {
    std::error_code error;
    fs::copy_file(path, partial, fs::copy_options::overwrite_existing, error);
    if (error) return absl::ErrnoToStatus(error.value(), "cannot be copied");
    PLAIT_ASSIGN_OR_RETURN(FileImage image, FileImage::On(partial));
    PLAIT_ASSIGN_OR_RETURN(File file, OpenHistoryFile(partial, image));
    PLAIT_RETURN_IF_ERROR(edit(file));
    PLAIT_RETURN_IF_ERROR(file.Close());
    return image.Finish();
  });
}

bool HasDraws(const std::string& journal_path) {
  JournalReader journal(journal_path);
  JournalDraw draw;
  return journal.Next(draw);
}

// The file then has `draws` draws.
absl::Status AppendAll(File& file, const JournalWriter& journal, std::int64_t draws) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t held, AppendJournal(file, journal.path()));
  if (held == draws) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(journal.path(), ": ", held, " draws can be read; expected ", draws));
}

// A draw has one value of a metric.
absl::Status CheckEachOnce(const std::string& path, const std::vector<Metric>& metrics,
                           std::vector<std::uint32_t> ids) {
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", metrics[*twice].name, " is in one draw twice; expected once"));
}

// Draws at which a file was resumed that are still in it, and `draws`. Files of earlier versions tell only the last.
std::string ResumedAt(const File& file, std::int64_t draws) {
  const absl::StatusOr<std::int64_t> last = IntAttribute(file, "/", "resumed_at_draw");
  const std::string known =
      TextAttribute(file, "/", "resumed_at_draws").value_or(last.ok() ? absl::StrCat(*last) : "");
  std::string all;
  for (const absl::string_view text : absl::StrSplit(known, ' ', absl::SkipEmpty())) {
    std::int64_t draw = 0;
    if (absl::SimpleAtoi(text, &draw) && draw < draws) absl::StrAppend(&all, draw, " ");
  }
  return absl::StrCat(all, draws);
}

}  // namespace

History::History(std::string path, const HistoryOptions& options, JournalWriter journal)
    : path_(std::move(path)),
      commit_interval_(absl::Seconds(options.commit_seconds)),
      journal_(std::move(journal)),
      next_commit_(absl::Now() + commit_interval_) {}

History::~History() {
  if (!open_) return;
  if (Commit().ok()) unlink(journal_.path().c_str());
  TellSinks([](HistorySink& sink) { return sink.Close(false); });
}

absl::Status History::CheckFree(const std::string& path) {
  if (!fs::exists(path) && !HasDraws(JournalPathOf(path))) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(path, ": holds an earlier run: choose another name, resume that run, or remove the file"));
}

absl::StatusOr<std::string> History::SetAside(const std::string& path) {
  if (fs::exists(path)) PLAIT_RETURN_IF_ERROR(Recover(path));
  return MoveAside(path);
}

absl::StatusOr<std::unique_ptr<History>> History::Create(const std::string& path,
                                                         const HistoryOptions& options) {
  PLAIT_RETURN_IF_ERROR(options.move_old_aside ? SetAside(path).status() : CheckFree(path));
  PLAIT_ASSIGN_OR_RETURN(JournalWriter journal, JournalWriter::Open(JournalPathOf(path)));
  // An old journal must not be taken for the new file's.
  PLAIT_RETURN_IF_ERROR(journal.Restart({}));
  const absl::Status created = WriteAtomically(
      path, 0, [&](const std::string& partial) { return CreateHistoryFile(partial, options.attributes); });
  if (!created.ok()) {
    unlink(journal.path().c_str());
    return created;
  }
  return std::unique_ptr<History>(new History(path, options, std::move(journal)));
}

absl::StatusOr<std::unique_ptr<History>> History::Resume(const std::string& path, std::int64_t draws,
                                                         const HistoryOptions& options) {
  PLAIT_RETURN_IF_ERROR(File::OpenForeign(path));
  PLAIT_RETURN_IF_ERROR(OpenHistoryFile(path));
  PLAIT_ASSIGN_OR_RETURN(JournalWriter journal, JournalWriter::Open(JournalPathOf(path)));
  PLAIT_RETURN_IF_ERROR(EditCopy(path, [&](File& file) -> absl::Status {
    PLAIT_RETURN_IF_ERROR(MarkVersion(file));
    PLAIT_RETURN_IF_ERROR(AppendJournal(file, journal.path()));
    PLAIT_RETURN_IF_ERROR(SetDrawCount(file, draws));
    for (const auto& [name, text] : options.attributes) {
      const bool again = name == "started" && TextAttribute(file, "/", name).ok();
      PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", again ? "resumed" : name, text));
    }
    PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "complete", std::int64_t{0}));
    PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "resumed_at_draws", ResumedAt(file, draws)));
    return SetAttribute(file, "/", "resumed_at_draw", draws);
  }));
  auto history = std::unique_ptr<History>(new History(path, options, std::move(journal)));
  PLAIT_RETURN_IF_ERROR(history->Load());
  return history;
}

absl::Status History::Recover(const std::string& path) {
  if (!fs::exists(JournalPathOf(path))) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(OpenHistoryFile(path));
  PLAIT_ASSIGN_OR_RETURN(const JournalWriter journal, JournalWriter::Open(JournalPathOf(path)));
  if (HasDraws(journal.path())) {
    PLAIT_RETURN_IF_ERROR(
        EditCopy(path, [&](File& file) { return AppendJournal(file, journal.path()).status(); }));
  }
  unlink(journal.path().c_str());
  return absl::OkStatus();
}

// Loads metrics and number of draws of the file, for a history that is resumed.
absl::Status History::Load() {
  PLAIT_ASSIGN_OR_RETURN(const File file, OpenHistoryFile(path_));
  PLAIT_ASSIGN_OR_RETURN(metrics_, MetricsOf(file));
  PLAIT_ASSIGN_OR_RETURN(draws_, DrawCount(file));
  committed_draws_ = draws_;
  for (std::uint32_t id = 0; id < metrics_.size(); ++id) {
    ids_[metrics_[id].name] = id;
    if (metrics_[id].length > 0) dimensions_[metrics_[id].dimension] = metrics_[id].length;
  }
  return journal_.Restart(metrics_);
}

// Drops a sink that fails, so that it cannot delay the run again.
void History::TellSinks(const std::function<absl::Status(HistorySink&)>& tell) {
  for (std::unique_ptr<HistorySink>& sink : sinks_) {
    if (sink == nullptr) continue;
    const absl::Status status = tell(*sink);
    if (status.ok()) continue;
    sink_status_.Update(status);
    sink.reset();
  }
}

void History::AddSink(std::unique_ptr<HistorySink> sink) {
  for (const Metric& metric : metrics_) {
    const absl::Status declared = sink->Declare(metric);
    sink_status_.Update(declared);
    if (!declared.ok()) return;
  }
  sinks_.push_back(std::move(sink));
}

// Checks the metric against the existing ones.
absl::Status History::CheckShape(const Metric& metric) const {
  const auto refuse = [&](auto... words) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", metric.name, ": ", words...));
  };
  if (metric.length < 0 || metric.length > kLongestVector)
    return refuse("a vector of ", metric.length, ", at most ", kLongestVector);
  if (const auto known = ids_.find(metric.name); known != ids_.end()) {
    const Metric& before = metrics_[known->second];
    if (before.length == metric.length) return absl::OkStatus();
    return refuse("length ", metric.length, " (0 is a number), but ", before.length, " before");
  }
  PLAIT_RETURN_IF_ERROR(CheckMetricName(metric.name));
  if (dimensions_.contains(metric.name)) return refuse("is the name of a dimension");
  if (metric.length == 0) return absl::OkStatus();
  const std::string dimension = DimensionOf(metric);
  PLAIT_RETURN_IF_ERROR(CheckMetricName(dimension));
  if (dimension == metric.name || ids_.contains(dimension))
    return refuse("dimension ", dimension, " is the name of a metric");
  const auto shared = dimensions_.find(dimension);
  if (shared == dimensions_.end() || shared->second == metric.length) return absl::OkStatus();
  return refuse("length ", metric.length, ", but dimension ", dimension, " has ", shared->second);
}

absl::Status History::Declare(const Metric& metric) {
  PLAIT_RETURN_IF_ERROR(CheckShape(metric));
  if (ids_.contains(metric.name)) return absl::OkStatus();
  if (!journal_.readable()) PLAIT_RETURN_IF_ERROR(journal_.Restart(metrics_));
  Metric added = metric;
  added.dimension = DimensionOf(metric);
  const std::uint32_t id = metrics_.size();
  PLAIT_RETURN_IF_ERROR(journal_.AddMetric(id, added));
  if (added.length > 0) dimensions_[added.dimension] = added.length;
  ids_[metric.name] = id;
  TellSinks([&](HistorySink& sink) { return sink.Declare(added); });
  metrics_.push_back(std::move(added));
  return absl::OkStatus();
}

absl::StatusOr<std::uint32_t> History::IdOf(absl::string_view name, std::int64_t length) {
  const auto found = ids_.find(name);
  if (found != ids_.end() && metrics_[found->second].length == length) return found->second;
  Metric metric{std::string(name)};
  metric.length = length;
  PLAIT_RETURN_IF_ERROR(Declare(metric));
  return static_cast<std::uint32_t>(metrics_.size() - 1);
}

// Checks that values of integer metrics are whole; ids_of_draw_ are the metrics of the draw.
absl::Status History::CheckValues(absl::Span<const Scalar> scalars, absl::Span<const Vector> vectors) const {
  const auto check = [&](const Metric& metric, double value) {
    if (!metric.integer || std::isnan(value) || IsWhole(value)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", metric.name, " is ", value, ", expected a whole number"));
  };
  std::size_t entry = 0;
  for (const Scalar& scalar : scalars)
    PLAIT_RETURN_IF_ERROR(check(metrics_[ids_of_draw_[entry++]], scalar.value));
  for (const Vector& vector : vectors) {
    const Metric& metric = metrics_[ids_of_draw_[entry++]];
    for (const double value : vector.values) PLAIT_RETURN_IF_ERROR(check(metric, value));
  }
  return absl::OkStatus();
}

absl::Status History::WriteToJournal(absl::Span<const Scalar> scalars, absl::Span<const Vector> vectors) {
  // The last commit may have written the file, but not begun the next journal (disk full).
  if (!journal_.readable()) PLAIT_RETURN_IF_ERROR(journal_.Restart(metrics_));
  // All names first: a new metric's record must not end up inside the record of the draw.
  ids_of_draw_.clear();
  for (const Scalar& scalar : scalars) {
    PLAIT_ASSIGN_OR_RETURN(const std::uint32_t id, IdOf(scalar.name, 0));
    ids_of_draw_.push_back(id);
  }
  for (const Vector& vector : vectors) {
    if (vector.values.empty())
      return absl::InvalidArgumentError(absl::StrCat(path_, ": ", vector.name, ": an empty vector"));
    PLAIT_ASSIGN_OR_RETURN(const std::uint32_t id, IdOf(vector.name, vector.values.size()));
    ids_of_draw_.push_back(id);
  }
  PLAIT_RETURN_IF_ERROR(CheckEachOnce(path_, metrics_, ids_of_draw_));
  PLAIT_RETURN_IF_ERROR(CheckValues(scalars, vectors));
  journal_.BeginDraw(draws_);
  std::size_t entry = 0;
  for (const Scalar& scalar : scalars)
    journal_.AddToDraw(ids_of_draw_[entry++], absl::MakeConstSpan(&scalar.value, 1));
  for (const Vector& vector : vectors) journal_.AddToDraw(ids_of_draw_[entry++], vector.values);
  return journal_.EndDraw();
}

absl::Status History::Append(absl::Span<const Scalar> scalars, absl::Span<const Vector> vectors,
                             absl::Time time) {
  PLAIT_CHECK(open_) << path_ << " is closed";
  PLAIT_RETURN_IF_ERROR(WriteToJournal(scalars, vectors));
  if (!sinks_.empty()) {
    const Draw draw{draws_, absl::ToDoubleSeconds(time - absl::UnixEpoch()), scalars, vectors};
    TellSinks([&](HistorySink& sink) { return sink.Add(draw); });
  }
  ++draws_;
  return CommitIfDue();
}

// The draw is already in the journal, so if the file cannot be written (disk full), this is tried again later; errors
// are returned by Commit and Close.
absl::Status History::CommitIfDue() {
  constexpr double kShareOfTime = 0.02;
  const absl::Time begin = absl::Now();
  if (begin < next_commit_) return absl::OkStatus();
  Commit().IgnoreError();
  const absl::Time end = absl::Now();
  next_commit_ = end + std::max(commit_interval_, (end - begin) / kShareOfTime);
  return absl::OkStatus();
}

absl::Status History::Commit() {
  if (committed_draws_ == draws_) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(EditCopy(path_, [&](File& file) { return AppendAll(file, journal_, draws_); }));
  committed_draws_ = draws_;
  return journal_.Restart(metrics_);
}

absl::Status History::Close() {
  if (!open_) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(EditCopy(path_, [&](File& file) -> absl::Status {
    PLAIT_RETURN_IF_ERROR(AppendAll(file, journal_, draws_));
    return SetAttribute(file, "/", "complete", std::int64_t{1});
  }));
  open_ = false;
  unlink(journal_.path().c_str());
  TellSinks([](HistorySink& sink) { return sink.Close(true); });
  return sink_status_;
}

}  // namespace plait::data
