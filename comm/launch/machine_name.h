// The common name of the machine that a host belongs to.
#ifndef PLAIT_COMM_LAUNCH_MACHINE_NAME_H_
#define PLAIT_COMM_LAUNCH_MACHINE_NAME_H_

#include <string>

#include "comm/launch/launcher.h"

namespace plait::comm {

// "Frontier", "Polaris", ...: from the variables by which sites name their machines (NERSC_HOST,
// LMOD_SYSTEM_NAME, SLURM_CLUSTER_NAME), else from the pattern of the host name; else `host`. Login nodes, which have
// the same names on many machines, are recognised by the variable only.
std::string MachineName(const Lookup& lookup, const std::string& host);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_MACHINE_NAME_H_
