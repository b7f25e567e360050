// Texts between ranks: for set-up, reports and errors, not for the inner loop.
#ifndef PLAIT_COMM_GATHERED_TEXT_H_
#define PLAIT_COMM_GATHERED_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/communicator.h"

namespace plait::comm {

// Collective. One text per rank, by rank; lengths may differ, and any bytes are kept.
std::vector<std::string> GatherText(const Communicator& world, absl::string_view mine,
                                    CallSite site = CallSite::current());

// Collective. The text of `root`; those of other ranks do not count.
std::string BroadcastText(const Communicator& world, absl::string_view mine, int root = 0,
                          CallSite site = CallSite::current());

// "0-3,7" for 0 1 2 3 7: ranks in messages, at most `most` ranges and then the count of the rest.
std::string RankRanges(const std::vector<int>& ranks, int most = 8);

}  // namespace plait::comm

#endif  // PLAIT_COMM_GATHERED_TEXT_H_
