// What every page carries with it, so that it needs nothing else: its style sheet and its script.
#ifndef PLAIT_TOOLS_REPORT_PARTS_PAGE_STYLE_H_
#define PLAIT_TOOLS_REPORT_PARTS_PAGE_STYLE_H_

#include "absl/strings/string_view.h"

namespace plait::report {

// Light and dark by prefers-color-scheme; colours are variables. Texts have a contrast of at least 4.5 to
// their background, curves and bars at least 3 (WCAG 2.1, AA).
absl::string_view PageStyle();

// Shows the values under the pointer below a chart. The page is complete without it.
absl::string_view PageScript();

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_PAGE_STYLE_H_
