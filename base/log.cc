#include "base/log.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "spdlog/sinks/stdout_color_sinks.h"

namespace plait::base {
namespace {

absl::StatusOr<spdlog::level::level_enum> LevelOf(const LogOptions& options) {
  if (options.level.empty()) return options.rank == 0 ? spdlog::level::info : spdlog::level::critical;
  const spdlog::level::level_enum level = spdlog::level::from_str(options.level);
  // from_str answers "off" to any word that it does not know.
  if (level != spdlog::level::off || options.level == "off") return level;
  return absl::InvalidArgumentError(absl::StrCat(
      "log level '", options.level, "': expected trace, debug, info, warning, error, critical or off"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<spdlog::logger>> MakeLogger(const LogOptions& options, spdlog::sink_ptr sink) {
  PLAIT_ASSIGN_OR_RETURN(const spdlog::level::level_enum level, LevelOf(options));
  const std::string name = options.ranks > 1 ? absl::StrCat("rank ", options.rank, " ") : "";
  auto logger = std::make_shared<spdlog::logger>(name, std::move(sink));
  logger->set_level(level);
  logger->flush_on(spdlog::level::info);
  logger->set_pattern("%H:%M:%S %n%^%l%$: %v");
  return logger;
}

absl::StatusOr<std::shared_ptr<spdlog::logger>> MakeLogger(const LogOptions& options) {
  const bool colour = DetectTerminal(STDERR_FILENO).colour;
  const auto mode = colour ? spdlog::color_mode::always : spdlog::color_mode::never;
  return MakeLogger(options, std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
}

}  // namespace plait::base
