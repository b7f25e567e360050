// A report as a self-contained HTML page: no network access, no third-party fonts or scripts.
//
// Sections: key figures, changed settings, comparison, curves, load of experts, a step rank by rank, metrics,
// throughput, messages by axis, ranks, environment. Works on phone and desktop, in light and dark, and in print;
// without its script (page.js) only the curves are missing. Texts from histories are escaped.
#ifndef PLAIT_TOOLS_REPORT_PARTS_PAGE_H_
#define PLAIT_TOOLS_REPORT_PARTS_PAGE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

struct PageOptions {
  bool follows = false;                 // the page polls its server for newer versions of itself
  std::vector<std::string> notes = {};  // whole sentences, shown before the notes of the runs
};

std::string PageHtml(absl::Span<const RunNumbers> runs, const PageOptions& options = {});

// Whether WritePage() would take nothing from the user: `path` is none of `inputs`, also under other names, and has no file,
// an empty one, an earlier page, or something that WritePage() refuses.
bool MayBecomePage(const std::string& path, const std::vector<std::string>& inputs);

// Replaces an older file atomically. Errors: as data::WriteAtomically.
absl::Status WritePage(absl::Span<const RunNumbers> runs, const std::string& path);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_PAGE_H_
