// One page over HTTP, for a browser on this machine.
#ifndef PLAIT_TOOLS_REPORT_PARTS_PAGE_SERVER_H_
#define PLAIT_TOOLS_REPORT_PARTS_PAGE_SERVER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plait::report {

struct ServedPage {
  std::string version;  // its ETag: must change whenever the page does
  std::string html;
};

// Whether a Host header names this machine and `port`: 127.0.0.1 or localhost with the port, which browsers leave out
// where it is 80.
bool IsOwnHost(absl::string_view host, int port);

// Answers GET / at http://127.0.0.1:port/ (port 0: any free port) with the result of `page`, one call at a time.
// Returns on errors only. `ready` is called once with the address, when connections are accepted.
//
// Listens on 127.0.0.1 only. Requests that are not for its own host (IsOwnHost) get status 403, which protects from DNS
// rebinding; methods other than GET get 405, several ranges 416. Request bodies are not read.
// A connection without a request is closed after a second, and holds up others no longer than that.
//
// UNAVAILABLE if the port is taken or the server ends.
absl::Status ServePage(int port, const std::function<ServedPage()>& page,
                       const std::function<void(const std::string& address)>& ready);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_PAGE_SERVER_H_
