// --offload and --offload-params of training programs: what lies in a folder's files instead of memory.
//
//   PLAIT_RETURN_IF_ERROR(CheckOffload({.folder = config.offload, .parameters = config.offload_params},
//   strategy)); DataParallel::Create(..., {.masters_place = StatePlaceOf(offload), .offloads_parameters =
//   offload.parameters}); ShardedOptimizer::Create(engine, options, StatePlaceOf(offload));
//
// With a folder: the optimizer's moments and, in mixed precision, its masters. With `parameters` also this
// rank's shares of the parameters, which only fsdp has apart. Rajbhandari et al., ZeRO-Infinity,
// arXiv:2104.07857. Local.
#ifndef PLAIT_TOOLS_TRAINING_PROGRAM_OFFLOAD_FLAG_H_
#define PLAIT_TOOLS_TRAINING_PROGRAM_OFFLOAD_FLAG_H_

#include <string>

#include "absl/status/status.h"
#include "parallel/offload/state_store.h"
#include "parallel/sharding/strategy.h"

namespace plait::training_program {

struct Offload {
  std::string folder = "";  // empty: all in memory
  bool parameters = false;
};

// What the flag --offload says: "none" or a folder, from where the user started the program.
std::string OffloadFolder(const std::string& flag);

// InvalidArgument, one line that begins with the flag, where parameters are to go without a folder or under a
// strategy that keeps them whole. The folder itself is looked at when the stores are made.
absl::Status CheckOffload(const Offload& offload, parallel::Strategy strategy);

parallel::StateStoreOptions StatePlaceOf(const Offload& offload);

}  // namespace plait::training_program

#endif  // PLAIT_TOOLS_TRAINING_PROGRAM_OFFLOAD_FLAG_H_
