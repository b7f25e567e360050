// What is left under a limit on a process's address space (ulimit -v).
#ifndef PLAIT_BASE_ADDRESS_SPACE_H_
#define PLAIT_BASE_ADDRESS_SPACE_H_

#include <cstdint>
#include <optional>

namespace plait::base {

// Bytes that this process may still map; nullopt if there is no limit, or if it cannot be determined. Local.
std::optional<std::int64_t> AddressSpaceLeft();

}  // namespace plait::base

#endif  // PLAIT_BASE_ADDRESS_SPACE_H_
