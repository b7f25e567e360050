// What a limit on a process's address space (ulimit -v) leaves.
#ifndef PLAIT_BASE_ADDRESS_SPACE_H_
#define PLAIT_BASE_ADDRESS_SPACE_H_

#include <cstdint>
#include <optional>

namespace plait::base {

// Bytes that this process may still map; nothing where there is no limit, or the system does not tell. Local.
std::optional<std::int64_t> AddressSpaceLeft();

}  // namespace plait::base

#endif  // PLAIT_BASE_ADDRESS_SPACE_H_
