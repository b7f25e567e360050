// Messages about what a program does, on standard error, through spdlog.
//
//   const std::shared_ptr<spdlog::logger> log = *MakeLogger({.rank = comm.rank(), .ranks = comm.size()});
//   log->info("{} windows from {}", count, folder);
//
// prints "09:41:07 rank 0 info: 7415 windows from data". Rank 0 says everything from info up, the others only
// what is critical, unless `level` names another one for all. What a tool is asked to compute goes to
// standard output instead. The caller owns the logger and passes it down; spdlog's registry and default
// logger are left alone.
#ifndef PLAIT_BASE_LOG_H_
#define PLAIT_BASE_LOG_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "spdlog/logger.h"

namespace plait::base {

struct LogOptions {
  int rank = 0;
  int ranks = 1;           // with one rank, lines do not name it
  std::string level = "";  // trace, debug, info, warning, error, critical, off; empty: by rank
};

// InvalidArgument for a level that is none of these.
absl::StatusOr<std::shared_ptr<spdlog::logger>> MakeLogger(const LogOptions& options);

// The same into a sink of the caller's.
absl::StatusOr<std::shared_ptr<spdlog::logger>> MakeLogger(const LogOptions& options, spdlog::sink_ptr sink);

}  // namespace plait::base

#endif  // PLAIT_BASE_LOG_H_
