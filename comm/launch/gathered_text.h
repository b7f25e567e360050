// Texts of all ranks, on all ranks: for set-up, reports and errors, not for the inner loop.
#ifndef PLAIT_COMM_LAUNCH_GATHERED_TEXT_H_
#define PLAIT_COMM_LAUNCH_GATHERED_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/communicator.h"

namespace plait::comm {

// Collective. One text per rank, by rank; lengths may differ.
std::vector<std::string> GatherText(const Communicator& world, absl::string_view mine,
                                    CallSite site = CallSite::current());

// "0-3,7" for 0 1 2 3 7: ranks in messages, at most `most` ranges and then the count of the rest.
std::string RankRanges(const std::vector<int>& ranks, int most = 8);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_GATHERED_TEXT_H_
