// A report as one HTML page that needs nothing else: no network, fonts or scripts of others.
//
// Sections: figures at a glance, what changed and how the runs compare, curves, metrics, throughput,
// messages, ranks, timeline, environment. On a phone and on a desk, in light and dark, printed; without its script
// (page.js) only the curves are missing. Texts of histories are texts, whatever is in them.
#ifndef PLAIT_TOOLS_REPORT_PARTS_PAGE_H_
#define PLAIT_TOOLS_REPORT_PARTS_PAGE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

struct PageOptions {
  bool follows = false;                 // the page asks where it came from for newer ones of itself
  std::vector<std::string> notes = {};  // whole sentences, before those of the runs
};

std::string PageHtml(absl::Span<const RunNumbers> runs, const PageOptions& options = {});

// Replaces an older file atomically. Errors: as data::WriteAtomically.
absl::Status WritePage(absl::Span<const RunNumbers> runs, const std::string& path);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_PAGE_H_
