// Messages about what a program does, with time, level and place in the source, through spdlog.
//
//   const absl::StatusOr<base::Log> log = base::MakeLog({.rank = comm.rank()});
//   log->Info(absl::StrCat(count, " windows from ", folder));
//
// prints, from line 358 of reader.cc,
//
//   [2024-07-17 07:35:30.304306][INFO][reader:358] - 7415 windows from data
//
// and the same from another rank with "[rank 3]" before the dash. Rank 0 says everything from INFO up, the
// others only what is CRITICAL. The environment changes that: LOG_LEVEL=debug is rank 0's level,
// LOG_FROM_ALL_RANKS=1 gives rank 0's level to all. Options come before the environment.
//
// Levels are shown in colour on a terminal, unless NO_COLOR is set. A Log is a small value that the caller
// passes down; spdlog's registry and default logger are left alone. Lines of several threads do not mix.
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
  bool all_ranks = false;  // all ranks have that level; also LOG_FROM_ALL_RANKS=1
  LogStream stream = LogStream::kStandardError;
  LogColour colour = LogColour::kOnTerminal;
  // Environment variables; empty: this process's.
  std::function<const char*(const char* name)> lookup = {};
};

// Where in the source a message stands. The default argument is the caller's place.
using LogSite = std::source_location;

class Log {
 public:
  // Says nothing at any level.
  Log();
  explicit Log(std::shared_ptr<spdlog::logger> logger);

  // Whether a message of this level would be shown: for messages that are costly to put together.
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

// INVALID_ARGUMENT for a level that is none of these, saying whether the option or LOG_LEVEL has it.
absl::StatusOr<Log> MakeLog(const LogOptions& options);

// The same, into a function of the caller's, which gets whole lines with their line ends.
absl::StatusOr<Log> MakeLog(const LogOptions& options, std::function<void(absl::string_view line)> write);

}  // namespace plait::base

#endif  // PLAIT_BASE_LOG_H_
