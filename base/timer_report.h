// The table of timers that a training run prints for each rank at its end.
//
//   std::cout << TimerTable(timers, /*rank=*/0);
//
//    *** Proc = 0        ***
//               timer              ||      count       |      total       |       mean       |      stdev       |
// ======================================================
//   ForWD::step                    ||      40768       |    3.1235e+01    |    7.6617e-04    |    2.7667e-04    |
//
// Times are in seconds, rows are sorted by name, timers without samples are omitted. Names longer than 30 characters
// widen the first column. The text begins with an empty line and ends with a newline, so that tables of several ranks
// can be concatenated.
#ifndef PLAIT_BASE_TIMER_REPORT_H_
#define PLAIT_BASE_TIMER_REPORT_H_

#include <string>

#include "base/timer.h"

namespace plait::base {

std::string TimerTable(const TimerSet& timers, int rank);

}  // namespace plait::base

#endif  // PLAIT_BASE_TIMER_REPORT_H_
