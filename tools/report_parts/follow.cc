#include "tools/report_parts/follow.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/report_parts/page.h"
#include "tools/report_parts/page_server.h"

namespace plait::report {
namespace {

// A version string that changes whenever a history or its journal is written.
std::string StampOf(const std::vector<std::string>& files) {
  std::string stamp;
  for (const std::string& file : files) {
    for (const char* part : {"", ".journal"}) {
      std::error_code absent;
      const auto size = std::filesystem::file_size(file + part, absent);
      const auto written = std::filesystem::last_write_time(file + part, absent);
      absl::StrAppend(&stamp, absent ? 0 : size, ".", absent ? 0 : written.time_since_epoch().count(), ".");
    }
  }
  return stamp;
}

std::string PageOf(const std::vector<std::string>& files, const RunOptions& options) {
  std::vector<RunNumbers> runs;
  std::vector<std::string> notes;
  for (const std::string& file : files) {
    absl::StatusOr<RunNumbers> run = ReadRun(file, options);
    if (run.ok()) {
      runs.push_back(*std::move(run));
    } else {
      notes.push_back(absl::StrCat(run.status().message(), "."));
    }
  }
  Label(runs);
  return PageHtml(runs, {.follows = true, .notes = notes});
}

}  // namespace

absl::Status Follow(const std::vector<std::string>& files, const RunOptions& options, int port) {
  for (const std::string& file : files) {
    std::error_code error;
    if (!std::filesystem::exists(file, error))
      return absl::NotFoundError(absl::StrCat(file, ": no such file"));
  }
  ServedPage served;
  const auto page = [&] {
    // Taken before reading, so that what is written meanwhile is read next time.
    const std::string stamp = StampOf(files);
    if (served.version != stamp) served = {stamp, PageOf(files, options)};
    return served;
  };
  return ServePage(port, page, [](const std::string& address) {
    std::printf("report: %s follows the runs; ^C to stop\n", address.c_str());
    std::fflush(stdout);
  });
}

}  // namespace plait::report
