// Old runs are never appended to and never overwritten: their files are moved out of the way.
#ifndef PLAIT_DATA_HISTORY_SET_ASIDE_H_
#define PLAIT_DATA_HISTORY_SET_ASIDE_H_

#include <string>

#include "absl/status/status.h"

namespace plait::data {

// Renames a file that is there to FILE.1, FILE.2, ..., the first that is free. None there is no error.
absl::Status SetAside(const std::string& path);

// Room for a new file `path`: AlreadyExists where there is one that is not to be moved.
absl::Status MakeRoomFor(const std::string& path, bool move_old_aside);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_SET_ASIDE_H_
