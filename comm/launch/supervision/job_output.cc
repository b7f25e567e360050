#include "comm/launch/supervision/job_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "comm/launch/supervision/process_tree.h"

namespace plait::comm {
namespace {

constexpr std::size_t kRememberedLines = 10;
constexpr std::size_t kRememberedErrors = 4;
constexpr std::size_t kLongestRemembered = 400;
constexpr std::size_t kNamedWriters = 4;
constexpr std::size_t kLongestRest = 1 << 16;
constexpr std::size_t kMostWaiting = 1 << 20;  // bytes for a reader who is slow
constexpr int kMillisecondsBetweenLooks = 100;

bool WriteAll(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string ClockTime(std::time_t time) {
  std::tm local{};
  localtime_r(&time, &local);
  return absl::StrFormat("%02d:%02d:%02d", local.tm_hour, local.tm_min, local.tm_sec);
}

absl::Status CannotWrite(const std::string& path, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("--log-dir: cannot write ", path, ": ", why, "; choose a folder that can be written"));
}

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? CannotWrite(folder, error.message()) : absl::OkStatus();
}

// A folder can be locked on fewer file systems than a file. Logs are left as they are until the lock is there.
absl::StatusOr<base::FileDescriptor> Lock(const std::string& folder, const std::string& log) {
  absl::StatusOr<base::FileDescriptor> file =
      base::FileDescriptor::Open(log, base::FileDescriptor::Mode::kOpenOrCreate);
  if (!file.ok()) return base::Prefixed(file.status(), "--log-dir");
  if (file->Lock().ok()) return file;
  return absl::FailedPreconditionError(
      absl::StrCat("--log-dir=", folder, ": in use by another launch; choose another folder"));
}

// LogOf(): at least four digits. Other files are the user's.
bool IsLogOfRank(absl::string_view name) {
  constexpr std::size_t kFewestDigits = 4;
  if (!absl::ConsumePrefix(&name, "rank-") || !absl::ConsumeSuffix(&name, ".log")) return false;
  const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  return name.size() >= kFewestDigits && std::all_of(name.begin(), name.end(), is_digit);
}

absl::Status DeleteLogsOfRanks(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (IsLogOfRank(entry.path().filename().string())) std::filesystem::remove(entry.path(), error);
  }
  return error ? CannotWrite(folder, error.message()) : absl::OkStatus();
}

absl::StatusOr<int> OpenLog(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return CannotWrite(path, std::strerror(errno));
  return file;
}

}  // namespace

JobOutput::JobOutput(const JobOutputOptions& options)
    : options_(options), queues_{OutputQueue(options.output), OutputQueue(options.error)} {}

JobOutput::~JobOutput() {
  for (const auto& [rank, source] : sources_) {
    if (source.log >= 0) close(source.log);
  }
}

std::string JobOutput::LogOf(int rank) const {
  if (options_.log_folder.empty()) return "";
  const std::string name = rank == kLauncherItself ? "launcher.log" : absl::StrFormat("rank-%04d.log", rank);
  return absl::StrCat(options_.log_folder, "/", name);
}

absl::Status JobOutput::OpenLogs() {
  if (options_.log_folder.empty()) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(MakeFolder(options_.log_folder));
  PLAIT_ASSIGN_OR_RETURN(lock_, Lock(options_.log_folder, LogOf(kLauncherItself)));
  PLAIT_RETURN_IF_ERROR(DeleteLogsOfRanks(options_.log_folder));
  for (int rank = kLauncherItself; rank < options_.ranks; ++rank) {
    PLAIT_ASSIGN_OR_RETURN(sources_[rank].log, OpenLog(LogOf(rank)));
  }
  return absl::OkStatus();
}

void JobOutput::Write(int rank, Stream stream, absl::string_view bytes) {
  if (bytes.empty()) return;
  Source& source = sources_[rank];
  last_write_ = source.last_write = NowSeconds();
  source.last_write_time = std::time(nullptr);
  std::string& rest = source.rest[static_cast<int>(stream)];
  absl::StrAppend(&rest, bytes);
  std::string whole, labelled;
  std::size_t begin = 0;
  for (std::size_t end; (end = rest.find_first_of("\n\r", begin)) != rest.npos; begin = end + 1) {
    if (rest[end] == '\r' && end + 1 < rest.size() && rest[end + 1] == '\n') ++end;
    const absl::string_view line = absl::string_view(rest).substr(begin, end + 1 - begin);
    Remember(rank, stream, line);
    absl::StrAppend(&labelled, Label(rank), line);
    absl::StrAppend(&whole, line);
  }
  rest.erase(0, begin);
  if (rest.size() > kLongestRest) {
    absl::StrAppend(&labelled, rest);
    whole += std::exchange(rest, "");
  }
  WriteLog(rank, whole);
  Emit(stream, labelled);
}

std::string JobOutput::Label(int rank) const {
  if (!options_.label || rank < 0) return "";
  return absl::StrFormat("[%*d] ", static_cast<int>(absl::StrCat(options_.ranks - 1).size()), rank);
}

void JobOutput::WriteLog(int rank, absl::string_view text) {
  Source& source = sources_[rank];
  if (source.log < 0 || WriteAll(source.log, text)) return;
  const std::string reason = std::strerror(errno);
  close(std::exchange(source.log, -1));
  Say(absl::StrCat("launch: cannot write ", LogOf(rank), ": ", reason, "; continuing without this log"));
}

void JobOutput::Remember(int rank, Stream stream, absl::string_view line) {
  if (!line.empty() && line.back() == '\r') return;  // a progress bar, which the next one covers
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.empty()) return;
  line = line.substr(0, kLongestRemembered);
  Source& source = sources_[rank];
  source.last_lines.emplace_back(line);
  if (source.last_lines.size() > kRememberedLines) source.last_lines.pop_front();
  if (stream == Stream::kOutput || rank == kLauncherItself) return;
  source.wrote_errors = true;
  last_errors_.emplace_back(rank, line);
  if (last_errors_.size() > kRememberedErrors) last_errors_.pop_front();
}

void JobOutput::Emit(Stream stream, const std::string& text) {
  OutputQueue& queue = queues_[static_cast<int>(stream)];
  if (text.empty() || user_left_ || (drops_ && queue.bytes() + text.size() > kMostWaiting)) return;
  queue.Add(text);
  NoteErrors();
}

void JobOutput::NoteErrors() {
  // Where errors alone are lost, as behind a connection that has ended, the output may go to a file.
  const int error = queues_[static_cast<int>(Stream::kOutput)].error();
  user_left_ = user_left_ || error != 0;
  if (error != 0 && error != EPIPE) problem_ = std::strerror(error);
}

std::vector<int> JobOutput::FilesToWaitFor() const {
  if (user_left_) return {-1, -1};
  return {queues_[0].file_to_wait_for(), queues_[1].file_to_wait_for()};
}

void JobOutput::WriteWaiting() {
  for (OutputQueue& queue : queues_) queue.Write();
  NoteErrors();
}

bool JobOutput::waits() const { return !user_left_ && queues_[0].bytes() + queues_[1].bytes() > 0; }

bool JobOutput::is_full() const {
  return !user_left_ && std::max(queues_[0].bytes(), queues_[1].bytes()) > kMostWaiting;
}

void JobOutput::Finish(double seconds, int interrupt) {
  const double deadline = NowSeconds() + seconds;
  while (waits() && NowSeconds() < deadline) {
    pollfd wait[3] = {{.fd = interrupt, .events = POLLIN, .revents = 0}};
    const std::vector<int> files = FilesToWaitFor();
    for (std::size_t i = 0; i < files.size(); ++i)
      wait[i + 1] = {.fd = files[i], .events = POLLOUT, .revents = 0};
    poll(wait, std::size(wait), kMillisecondsBetweenLooks);
    if (wait[0].revents != 0) return;
    WriteWaiting();
  }
}

void JobOutput::Flush() {
  for (auto& [rank, source] : sources_) {
    for (const Stream stream : {Stream::kOutput, Stream::kError}) {
      std::string& rest = source.rest[static_cast<int>(stream)];
      if (rest.empty()) continue;
      Remember(rank, stream, rest);
      WriteLog(rank, rest);
      Emit(stream, absl::StrCat(Label(rank), std::exchange(rest, ""), "\n"));
    }
  }
}

void JobOutput::Say(absl::string_view line) { Emit(Stream::kError, base::ErrorText(std::string(line))); }

std::vector<std::string> JobOutput::LastLines(int rank) const {
  const auto found = sources_.find(rank);
  if (found == sources_.end()) return {};
  return {found->second.last_lines.begin(), found->second.last_lines.end()};
}

std::vector<std::string> JobOutput::LastErrorsOfOthers(int rank) const {
  const auto found = sources_.find(rank);
  if (found != sources_.end() && found->second.wrote_errors) return {};
  std::vector<std::string> lines;
  for (const auto& [writer, line] : last_errors_) lines.push_back(absl::StrCat("[", writer, "] ", line));
  return lines;
}

std::string JobOutput::Silent() const {
  std::vector<int> silent;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const auto found = sources_.find(rank);
    if (found == sources_.end() || found->second.last_write == 0) silent.push_back(rank);
  }
  if (silent.empty()) return "";
  const bool all = static_cast<int>(silent.size()) == options_.ranks;
  if (all) return "nothing from any rank";
  const std::size_t shown = std::min(silent.size(), 2 * kNamedWriters);
  return absl::StrCat("nothing from rank ",
                      absl::StrJoin(silent.begin(), silent.begin() + static_cast<long>(shown), ", "),
                      shown < silent.size() ? absl::StrCat(" and ", silent.size() - shown, " others") : "");
}

std::string JobOutput::LastWriters() const {
  std::vector<std::pair<double, int>> writers;
  for (const auto& [rank, source] : sources_) {
    if (rank >= 0 && source.last_write > 0) writers.emplace_back(-source.last_write, rank);
  }
  std::sort(writers.begin(), writers.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(writers.size(), kNamedWriters); ++i) {
    const int rank = writers[i].second;
    parts.push_back(absl::StrFormat("rank %d at %s (%.1f s ago)", rank,
                                    ClockTime(sources_.at(rank).last_write_time),
                                    NowSeconds() + writers[i].first));
  }
  if (writers.size() > kNamedWriters)
    parts.push_back(absl::StrCat(writers.size() - kNamedWriters, " others before"));
  std::string text = absl::StrJoin(parts, ", ");
  if (const std::string silent = Silent(); !silent.empty())
    absl::StrAppend(&text, text.empty() ? "" : "; ", silent);
  return text;
}

}  // namespace plait::comm
