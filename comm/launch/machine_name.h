// The name of the machine that a host belongs to, as its users call it.
#ifndef PLAIT_COMM_LAUNCH_MACHINE_NAME_H_
#define PLAIT_COMM_LAUNCH_MACHINE_NAME_H_

#include <string>

#include "comm/launch/launcher.h"

namespace plait::comm {

// "Frontier", "Polaris", ...: from the variables by which sites name their machines (NERSC_HOST,
// LMOD_SYSTEM_NAME, SLURM_CLUSTER_NAME), else from the form of the host's name; `host` itself where neither
// says anything. Login nodes are called login1 on many machines: they need the variable.
std::string MachineName(const Lookup& lookup, const std::string& host);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_MACHINE_NAME_H_
