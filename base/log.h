// Messages about what a program does, with time, level and place in the source, through spdlog.
//
//   const absl::StatusOr<base::Log> log = base::MakeLog({.rank = comm.rank()});
//   log->Info(absl::StrCat(count, " windows from ", folder));
//
// prints, from line 358 of reader.cc,
//
//   [2024-07-17 07:35:30.304306][INFO][reader:358] - 7415 windows from data
//
// and the same from another rank with "[rank 3]" before the dash. By default rank 0 logs from INFO up, the other ranks
// only CRITICAL. The environment changes that: LOG_LEVEL=debug sets rank 0's level, LOG_FROM_ALL_RANKS=1 applies rank
// 0's level to all ranks. LogOptions::level takes precedence over LOG_LEVEL.
//
// Levels are coloured on a terminal, unless NO_COLOR is set. A Log is cheap to copy and passed down by value; spdlog's
// registry and default logger are not touched. Thread-safe: lines of several threads do not interleave.
#ifndef PLAIT_BASE_LOG_H_
#define PLAIT_BASE_LOG_H_

#include <functional>
#include <memory>
#include <source_location>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spdlog {
class logger;
}

namespace plait::base {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kCritical, kOff };
enum class LogStream { kStandardError, kStandardOutput };
enum class LogColour { kOnTerminal, kNever, kAlways };

struct LogOptions {
  int rank = 0;
  std::string level = "";  // trace, debug, info, warning, error, critical, off; empty: LOG_LEVEL, else info
  bool all_ranks = false;  // use that level on all ranks; also LOG_FROM_ALL_RANKS, if set and not "0"
  LogStream stream = LogStream::kStandardError;
  LogColour colour = LogColour::kOnTerminal;
  // Looks up environment variables; empty: std::getenv.
  std::function<const char*(const char* name)> lookup = {};
};

// Source location of a message; the default argument is the caller's.
using LogSite = std::source_location;

class Log {
 public:
  // Logs nothing.
  Log();
  explicit Log(std::shared_ptr<spdlog::logger> logger);

  // Whether a message of this level would be shown: for messages that are expensive to build.
  bool Shows(LogLevel level) const;
  void Write(LogLevel level, absl::string_view message, LogSite site = LogSite::current()) const;

  void Debug(absl::string_view message, LogSite site = LogSite::current()) const;
  void Info(absl::string_view message, LogSite site = LogSite::current()) const;
  void Warning(absl::string_view message, LogSite site = LogSite::current()) const;
  void Error(absl::string_view message, LogSite site = LogSite::current()) const;
  void Critical(absl::string_view message, LogSite site = LogSite::current()) const;

 private:
  std::shared_ptr<spdlog::logger> logger_;
};

// INVALID_ARGUMENT for an unknown level; the message says whether it came from the option or from LOG_LEVEL.
absl::StatusOr<Log> MakeLog(const LogOptions& options);

// The same, but passes each line, with its newline, to `write`.
absl::StatusOr<Log> MakeLog(const LogOptions& options, std::function<void(absl::string_view line)> write);

}  // namespace plait::base

#endif  // PLAIT_BASE_LOG_H_
