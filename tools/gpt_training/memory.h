// The memory that a run will need, from its settings and a model without memory.
//
//   const parallel::MemoryPlan plan = PlanOf(config, MetaModel(config, options), mesh);
//   world.Agree(parallel::CheckFits(plan, MemoryOfHost(config, ranks_on_host), ranks_on_host));
#ifndef PLAIT_TOOLS_GPT_TRAINING_MEMORY_H_
#define PLAIT_TOOLS_GPT_TRAINING_MEMORY_H_

#include "comm/device_mesh.h"
#include "models/gpt/gpt.h"
#include "parallel/plan/memory_plan.h"
#include "tools/gpt_training/config.h"

namespace plait::gpt_training {

// Local. Settings must have passed Check(). Activations by ActivationBytesPerSample.
parallel::MemoryPlan PlanOf(const Config& config, const gpt::Gpt& model, const comm::DeviceMesh& mesh);

// --memory-limit for each rank on the host, else what the host has.
parallel::NodeMemory MemoryOfHost(const Config& config, int ranks_on_host);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_MEMORY_H_
