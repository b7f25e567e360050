#include "tools/report_parts/follow.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "data/history/journal.h"
#include "tools/report_parts/page.h"
#include "tools/report_parts/page_server.h"

namespace plait::report {
namespace {

void AddStamp(const std::string& file, std::string& stamp) {
  std::error_code absent;
  const auto size = std::filesystem::file_size(file, absent);
  const auto written = std::filesystem::last_write_time(file, absent);
  absl::StrAppend(&stamp, absent ? 0 : size, ".", absent ? 0 : written.time_since_epoch().count(), ".");
}

// A version string that changes whenever a history, its journal or a trace is written.
std::string StampOf(const std::vector<std::string>& files, const std::vector<std::string>& traces) {
  std::string stamp;
  for (const std::string& file : files) {
    AddStamp(file, stamp);
    AddStamp(data::JournalPathOf(file), stamp);
  }
  for (const std::string& trace : traces) AddStamp(trace, stamp);
  return stamp;
}

struct PageOfRuns {
  std::string html;
  std::vector<std::string> traces;  // that the histories name, whether they exist or not
};

PageOfRuns Read(const std::vector<std::string>& files, const RunOptions& options) {
  PageOfRuns page;
  std::vector<absl::Status> unreadable;
  const std::vector<RunNumbers> runs = ReadRuns(files, options, unreadable);
  std::vector<std::string> notes;
  for (const absl::Status& error : unreadable) notes.push_back(absl::StrCat(error.message(), "."));
  for (const RunNumbers& run : runs) {
    if (const std::string trace = TracePath(run); !trace.empty()) page.traces.push_back(trace);
  }
  page.html = PageHtml(runs, {.follows = true, .notes = notes});
  return page;
}

// The page of the files as they are now, or `served` if they have not changed since. A run writes its trace after it has
// closed its history; `traces` are those known from the last reading.
void Refresh(const std::vector<std::string>& files, const RunOptions& options,
             std::vector<std::string>& traces, ServedPage& served) {
  constexpr int kRounds = 2;  // the first learns of traces, whose stamps it cannot have taken
  for (int round = 0; round < kRounds; ++round) {
    // Taken before reading, so that what is written meanwhile is read next time.
    std::string stamp = StampOf(files, traces);
    if (served.version == stamp) return;
    PageOfRuns page = Read(files, options);
    served = {std::move(stamp), std::move(page.html)};
    if (page.traces == traces) return;
    traces = std::move(page.traces);
  }
}

}  // namespace

absl::Status Follow(const std::vector<std::string>& files, const RunOptions& options, int port) {
  for (const std::string& file : files) {
    std::error_code error;
    if (!std::filesystem::exists(file, error))
      return absl::NotFoundError(absl::StrCat(file, ": no such file"));
  }
  ServedPage served;
  std::vector<std::string> traces;
  const auto page = [&] {
    Refresh(files, options, traces, served);
    return served;
  };
  return ServePage(port, page, [](const std::string& address) {
    std::printf("report: %s follows the runs; ^C to stop\n", address.c_str());
    std::fflush(stdout);
  });
}

}  // namespace plait::report
