#include "data/history/history.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/history/history_file.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

std::string JournalPath(const std::string& path) { return path + ".journal"; }

// Does `edit` on a copy and puts that in the file's place.
absl::Status EditCopy(const std::string& path, const std::function<absl::Status(File&)>& edit) {
  std::error_code ignored;
  const std::int64_t bytes = fs::file_size(path, ignored);
  return WriteAtomically(path, bytes, [&](const std::string& partial) -> absl::Status {
    std::error_code error;
    fs::copy_file(path, partial, fs::copy_options::overwrite_existing, error);
    if (error) return absl::ErrnoToStatus(error.value(), "cannot be copied");
    PLAIT_ASSIGN_OR_RETURN(File file, OpenHistoryFile(partial, File::Mode::kReadWrite));
    const absl::Status edited = edit(file);
    const absl::Status closed = file.Close();
    return edited.ok() ? closed : edited;
  });
}

absl::Status CheckName(absl::string_view name) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '+' || c == '.';
  };
  const bool begins_well =
      !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_');
  if (begins_well && std::all_of(name.begin(), name.end(), is_plain) && name != "draw")
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "metric \"", name, "\": a name has letters, digits, _ - + . after a letter or _, and is not \"draw\""));
}

absl::Status MoveAside(const std::string& path) {
  if (!fs::exists(path)) return absl::OkStatus();
  int number = 1;
  while (fs::exists(absl::StrCat(path, ".", number))) ++number;
  std::error_code error;
  fs::rename(path, absl::StrCat(path, ".", number), error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path, ": cannot be moved aside"));
}

bool HasDraws(const std::string& journal_path) {
  JournalReader journal(journal_path);
  JournalDraw draw;
  return journal.Next(draw);
}

absl::Status MakeRoom(const std::string& path, bool move_old_aside) {
  if (move_old_aside) {
    if (fs::exists(path)) PLAIT_RETURN_IF_ERROR(History::Recover(path));
    return MoveAside(path);
  }
  if (!fs::exists(path) && !HasDraws(JournalPath(path))) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(path, ": holds an earlier run: choose another name, resume that run, or remove the file"));
}

}  // namespace

History::History(std::string path, const HistoryOptions& options, JournalWriter journal)
    : path_(std::move(path)),
      commit_interval_(absl::Seconds(options.commit_seconds)),
      journal_(std::move(journal)),
      next_commit_(absl::Now() + commit_interval_) {}

History::~History() {
  if (open_ && Commit().ok()) unlink(journal_.path().c_str());
}

absl::StatusOr<std::unique_ptr<History>> History::Create(const std::string& path,
                                                         const HistoryOptions& options) {
  PLAIT_RETURN_IF_ERROR(MakeRoom(path, options.move_old_aside));
  PLAIT_ASSIGN_OR_RETURN(JournalWriter journal, JournalWriter::Open(JournalPath(path)));
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
  PLAIT_RETURN_IF_ERROR(OpenHistoryFile(path, File::Mode::kRead));
  PLAIT_ASSIGN_OR_RETURN(JournalWriter journal, JournalWriter::Open(JournalPath(path)));
  PLAIT_RETURN_IF_ERROR(EditCopy(path, [&](File& file) -> absl::Status {
    PLAIT_RETURN_IF_ERROR(AppendJournal(file, journal.path()));
    PLAIT_RETURN_IF_ERROR(SetDrawCount(file, draws));
    for (const auto& [name, text] : options.attributes)
      PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", name, text));
    PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "complete", std::int64_t{0}));
    return SetAttribute(file, "/", "resumed_at_draw", draws);
  }));
  auto history = std::unique_ptr<History>(new History(path, options, std::move(journal)));
  PLAIT_RETURN_IF_ERROR(history->Load());
  return history;
}

absl::Status History::Recover(const std::string& path) {
  if (!fs::exists(JournalPath(path))) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(OpenHistoryFile(path, File::Mode::kRead));
  PLAIT_ASSIGN_OR_RETURN(const JournalWriter journal, JournalWriter::Open(JournalPath(path)));
  if (HasDraws(journal.path())) {
    PLAIT_RETURN_IF_ERROR(
        EditCopy(path, [&](File& file) { return AppendJournal(file, journal.path()).status(); }));
  }
  unlink(journal.path().c_str());
  return absl::OkStatus();
}

// Metrics and draws of the file, for a history that goes on with it.
absl::Status History::Load() {
  PLAIT_ASSIGN_OR_RETURN(const File file, OpenHistoryFile(path_, File::Mode::kRead));
  PLAIT_ASSIGN_OR_RETURN(metrics_, MetricsOf(file));
  PLAIT_ASSIGN_OR_RETURN(draws_, DrawCount(file));
  committed_draws_ = draws_;
  for (std::uint32_t id = 0; id < metrics_.size(); ++id) ids_[metrics_[id].name] = id;
  return journal_.Restart(metrics_);
}

absl::Status History::Declare(const Metric& metric) {
  PLAIT_RETURN_IF_ERROR(CheckName(metric.name));
  if (ids_.contains(metric.name)) return absl::OkStatus();
  const std::uint32_t id = metrics_.size();
  PLAIT_RETURN_IF_ERROR(journal_.AddMetric(id, metric));
  metrics_.push_back(metric);
  ids_[metric.name] = id;
  return absl::OkStatus();
}

absl::StatusOr<std::uint32_t> History::IdOf(absl::string_view name) {
  auto found = ids_.find(name);
  if (found != ids_.end()) return found->second;
  PLAIT_RETURN_IF_ERROR(Declare({std::string(name), "", ""}));
  return static_cast<std::uint32_t>(metrics_.size() - 1);
}

absl::Status History::Append(absl::Span<const Scalar> scalars) {
  PLAIT_CHECK(open_) << path_ << " is closed";
  values_.clear();
  for (const Scalar& scalar : scalars) {
    PLAIT_ASSIGN_OR_RETURN(const std::uint32_t id, IdOf(scalar.name));
    values_.emplace_back(id, scalar.value);
  }
  PLAIT_RETURN_IF_ERROR(journal_.AddDraw(draws_, values_));
  ++draws_;
  return CommitIfDue();
}

// The draw is safe in the journal by now, so a file that cannot be written (disk full) is tried again later;
// the last Commit or Close tells.
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
  PLAIT_RETURN_IF_ERROR(
      EditCopy(path_, [&](File& file) { return AppendJournal(file, journal_.path()).status(); }));
  committed_draws_ = draws_;
  return journal_.Restart(metrics_);
}

absl::Status History::Close() {
  if (!open_) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(EditCopy(path_, [&](File& file) -> absl::Status {
    PLAIT_RETURN_IF_ERROR(AppendJournal(file, journal_.path()));
    return SetAttribute(file, "/", "complete", std::int64_t{1});
  }));
  open_ = false;
  unlink(journal_.path().c_str());
  return absl::OkStatus();
}

}  // namespace plait::data
