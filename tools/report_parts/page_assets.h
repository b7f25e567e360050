// The contents of page.css and page.js, embedded at build time.
#ifndef PLAIT_TOOLS_REPORT_PARTS_PAGE_ASSETS_H_
#define PLAIT_TOOLS_REPORT_PARTS_PAGE_ASSETS_H_

namespace plait::report {

extern const char kPageStyle[];
extern const char kPageScript[];

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_PAGE_ASSETS_H_
