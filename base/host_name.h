// The name of this host.
#ifndef PLAIT_BASE_HOST_NAME_H_
#define PLAIT_BASE_HOST_NAME_H_

#include <string>

namespace plait::base {

// gethostname(2), up to 255 bytes; "unknown" if there is none.
std::string HostName();

}  // namespace plait::base

#endif  // PLAIT_BASE_HOST_NAME_H_
