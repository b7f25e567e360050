// Strings between ranks: for set-up, reports and errors, not for the inner loop.
#ifndef PLAIT_COMM_GATHERED_TEXT_H_
#define PLAIT_COMM_GATHERED_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/communicator.h"

namespace plait::comm {

// Collective. Returns every rank's text, by rank, on all ranks; lengths may differ, any bytes are allowed.
std::vector<std::string> GatherText(const Communicator& world, absl::string_view mine,
                                    CallSite site = CallSite::current());

// Collective. Returns the text of `root`; `mine` is ignored on other ranks.
std::string BroadcastText(const Communicator& world, absl::string_view mine, int root = 0,
                          CallSite site = CallSite::current());

// "0-3,7" for the sorted ranks 0 1 2 3 7; after `most` ranges " and 5 more". Local.
std::string RankRanges(const std::vector<int>& ranks, int most = 8);

}  // namespace plait::comm

#endif  // PLAIT_COMM_GATHERED_TEXT_H_
