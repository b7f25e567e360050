#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "spdlog/logger.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/sinks/stdout_color_sinks.h"

namespace plait::base {
namespace {

constexpr const char* kNames[] = {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "OFF"};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  return static_cast<spdlog::level::level_enum>(static_cast<int>(level));
}

// "INFO" where spdlog would write "info".
class LevelName : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const absl::string_view name = kNames[message.level];
    line.append(name.data(), name.data() + name.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LevelName>(); }
};

// "log:358" for base/log.cc.
class Place : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    absl::string_view file = message.source.filename == nullptr ? "" : message.source.filename;
    file.remove_prefix(file.rfind('/') == file.npos ? 0 : file.rfind('/') + 1);
    const std::string text = absl::StrCat(file.substr(0, file.rfind('.')), ":", message.source.line);
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Place>(); }
};

class FunctionSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(absl::string_view)> write) : write_(std::move(write)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_(absl::string_view(line.data(), line.size()));
  }
  void flush_() override {}

  std::function<void(absl::string_view)> write_;
};

std::string Variable(const LogOptions& options, const char* name) {
  const char* value = options.lookup ? options.lookup(name) : std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<LogLevel> ParseLevel(const std::string& word, absl::string_view where) {
  for (int level = 0; level <= static_cast<int>(LogLevel::kOff); ++level) {
    if (absl::AsciiStrToUpper(word) == kNames[level]) return static_cast<LogLevel>(level);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, "'", word, "': expected trace, debug, info, warning, error, critical or off"));
}

absl::StatusOr<LogLevel> LevelOf(const LogOptions& options) {
  const std::string from_environment = Variable(options, "LOG_LEVEL");
  LogLevel level = LogLevel::kInfo;
  if (!options.level.empty()) {
    PLAIT_ASSIGN_OR_RETURN(level, ParseLevel(options.level, "log level "));
  } else if (!from_environment.empty()) {
    PLAIT_ASSIGN_OR_RETURN(level, ParseLevel(from_environment, "LOG_LEVEL="));
  }
  const std::string all = Variable(options, "LOG_FROM_ALL_RANKS");
  const bool all_ranks = options.all_ranks || (!all.empty() && all != "0");
  return all_ranks || options.rank == 0 ? level : std::max(level, LogLevel::kCritical);
}

absl::StatusOr<Log> MakeLog(const LogOptions& options, spdlog::sink_ptr sink) {
  PLAIT_ASSIGN_OR_RETURN(const LogLevel level, LevelOf(options));
  const std::string rank = options.rank == 0 ? "" : absl::StrCat("[rank ", options.rank, "]");
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelName>('*').add_flag<Place>('&');
  formatter->set_pattern("[%Y-%m-%d %H:%M:%S.%f][%^%*%$][%&]" + rank + " - %v");
  auto logger = std::make_shared<spdlog::logger>("", std::move(sink));
  logger->set_level(ToSpdlog(level));
  logger->flush_on(spdlog::level::trace);
  logger->set_formatter(std::move(formatter));
  return Log(std::move(logger));
}

bool Coloured(const LogOptions& options, int file_descriptor) {
  if (options.colour != LogColour::kOnTerminal) return options.colour == LogColour::kAlways;
  return DetectTerminal(file_descriptor).interactive && Variable(options, "NO_COLOR").empty();
}

}  // namespace

Log::Log() = default;
Log::Log(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {}

bool Log::Shows(LogLevel level) const { return logger_ != nullptr && logger_->should_log(ToSpdlog(level)); }

void Log::Write(LogLevel level, absl::string_view message, LogSite site) const {
  if (logger_ == nullptr) return;
  const spdlog::source_loc place(site.file_name(), static_cast<int>(site.line()), site.function_name());
  logger_->log(place, ToSpdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

void Log::Debug(absl::string_view message, LogSite site) const { Write(LogLevel::kDebug, message, site); }
void Log::Info(absl::string_view message, LogSite site) const { Write(LogLevel::kInfo, message, site); }
void Log::Warning(absl::string_view message, LogSite site) const { Write(LogLevel::kWarning, message, site); }
void Log::Error(absl::string_view message, LogSite site) const { Write(LogLevel::kError, message, site); }
void Log::Critical(absl::string_view message, LogSite site) const {
  Write(LogLevel::kCritical, message, site);
}

absl::StatusOr<Log> MakeLog(const LogOptions& options) {
  if (options.stream == LogStream::kStandardOutput) {
    const auto mode =
        Coloured(options, STDOUT_FILENO) ? spdlog::color_mode::always : spdlog::color_mode::never;
    return MakeLog(options, std::make_shared<spdlog::sinks::stdout_color_sink_mt>(mode));
  }
  const auto mode = Coloured(options, STDERR_FILENO) ? spdlog::color_mode::always : spdlog::color_mode::never;
  return MakeLog(options, std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
}

absl::StatusOr<Log> MakeLog(const LogOptions& options, std::function<void(absl::string_view line)> write) {
  return MakeLog(options, std::make_shared<FunctionSink>(std::move(write)));
}

}  // namespace plait::base
