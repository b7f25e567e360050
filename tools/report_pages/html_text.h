// Texts of unknown origin in a page.
#ifndef PLAIT_TOOLS_REPORT_PAGES_HTML_TEXT_H_
#define PLAIT_TOOLS_REPORT_PAGES_HTML_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace plait::report {

// For element content and quoted attributes: & < > " ' become entities, bytes that are not UTF-8 become
// U+FFFD, control characters (but for tab and line end) are left out, as HTML forbids them.
std::string Html(absl::string_view text);

// A coordinate or percentage on two decimals, without trailing zeros: "12.5".
std::string Decimal(double value);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PAGES_HTML_TEXT_H_
