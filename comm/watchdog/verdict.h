// Which ranks are at fault when a job hangs: a pure function of what the ranks report.
//
//   rank 3 (node7, pid 4711) has not entered #12 all_reduce[tp] f32[180736]; last entered #9 broadcast[tp]
//   f32[10], 4.1 s ago, in phase optimizer
//
// Of ranks that are gone the line goes on with who waits for them: "; rank 0 waits for it in #12 all_reduce[tp] ...".
// Looked for in this order, and the first kind found is reported, one line per rank at fault: ranks that
// called another collective than the others; ranks that are gone; ranks that end with an error; ranks that
// others wait for and that are not in any call (late); ranks that wait for each other in a circle.
#ifndef PLAIT_COMM_WATCHDOG_VERDICT_H_
#define PLAIT_COMM_WATCHDOG_VERDICT_H_

#include <string>
#include <vector>

#include "comm/watchdog/rank_report.h"

namespace plait::comm {

// The group in which ranks meet when their main has ended (comm/session_main.h).
inline constexpr char kVerdictGroup[] = "verdict";

// `reports[r]` is rank r's; the last ranks may be left out. Waits of less than `timeout_seconds` accuse nobody. Empty: nobody is guilty.
std::vector<std::string> FindGuilty(const std::vector<RankReport>& reports, double timeout_seconds,
                                    double now_seconds);

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_VERDICT_H_
