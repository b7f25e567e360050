// report --follow: a page that grows while its runs go on.
#ifndef PLAIT_TOOLS_REPORT_PARTS_FOLLOW_H_
#define PLAIT_TOOLS_REPORT_PARTS_FOLLOW_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

// Serves the page of these histories on 127.0.0.1 (page_server.h) and prints its address. Returns on errors only. The
// files, their journals and traces are read again when they have changed, and never written. A history that cannot be
// read yet, such as one without draws, gives a note on the page. NOT_FOUND if a file does not exist at the start; errors
// of ServePage.
absl::Status Follow(const std::vector<std::string>& files, const RunOptions& options, int port);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_FOLLOW_H_
