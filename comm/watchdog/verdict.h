// Which ranks are at fault when a job hangs: a pure function of what the ranks report.
//
//   rank 3 (node7, pid 4711) has not entered #12 all_reduce[tp] f32[180736]; last entered #9 broadcast[tp] f32[10] root
//   0, 4.1 s ago, in phase optimizer
//
// For a rank that is gone, the line ends with a rank that waits for it: "; rank 0 waits for it in #12 all_reduce ...".
// The first kind of fault that is found is reported, one line per rank at fault, in this order: ranks that called
// another collective than most; ranks that are gone; ranks that end with an error; ranks that others wait for and that
// are not in any call (late); ranks that wait for each other in a cycle.
#ifndef PLAIT_COMM_WATCHDOG_VERDICT_H_
#define PLAIT_COMM_WATCHDOG_VERDICT_H_

#include <string>
#include <vector>

#include "comm/watchdog/rank_report.h"

namespace plait::comm {

// The group in which ranks agree on their status at the end of RunMain (comm/session_main.h).
inline constexpr char kVerdictGroup[] = "verdict";

// Returns one line per rank at fault; empty if there is none. `reports[r]` is rank r's; the last ranks may be missing.
// Waits shorter than `timeout_seconds` count as no fault. `now_seconds` is on the clock of
// RankReport::received_seconds.
std::vector<std::string> FindGuilty(const std::vector<RankReport>& reports, double timeout_seconds,
                                    double now_seconds);

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_VERDICT_H_
