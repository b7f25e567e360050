// What launch found and will do, as text.
#ifndef PLAIT_TOOLS_LAUNCH_PARTS_SUMMARY_H_
#define PLAIT_TOOLS_LAUNCH_PARTS_SUMMARY_H_

#include <string>

#include "tools/launch_parts/planning.h"

namespace plait::launching {

// `utf8`: the output shows more than ASCII. [HOSTS] and [DIST INFO] (NGPUS NHOSTS NGPU_PER_HOST HOSTFILE
// DIST_LAUNCH), then what the choice rests on.
std::string Summary(const PlannedJob& job, const Surroundings& here, bool utf8);

}  // namespace plait::launching

#endif  // PLAIT_TOOLS_LAUNCH_PARTS_SUMMARY_H_
