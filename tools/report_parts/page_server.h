// One page over HTTP, for a browser on this machine.
#ifndef PLAIT_TOOLS_REPORT_PARTS_PAGE_SERVER_H_
#define PLAIT_TOOLS_REPORT_PARTS_PAGE_SERVER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace plait::report {

struct ServedPage {
  std::string version;  // its ETag: another text whenever the page is another
  std::string html;
};

// Answers GET / at http://127.0.0.1:port/ (port 0: a free one) with what `page` returns then, one call at a time, until
// the process is ended. `ready` is told the address once, when connections are accepted.
//
// Listens on 127.0.0.1 only. A request whose Host is not that address is refused (403), so that no web page reaches it
// through a name of its own that leads here (DNS rebinding); so is any method but GET (405). Bodies are not read.
//
// Errors: Unavailable where the port is taken.
absl::Status ServePage(int port, const std::function<ServedPage()>& page,
                       const std::function<void(const std::string& address)>& ready);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_PAGE_SERVER_H_
