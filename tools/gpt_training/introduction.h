// What a run says first: where it runs, on what, with which settings.
#ifndef PLAIT_TOOLS_GPT_TRAINING_INTRODUCTION_H_
#define PLAIT_TOOLS_GPT_TRAINING_INTRODUCTION_H_

#include "base/log.h"
#include "comm/device_mesh.h"
#include "comm/launch/dist_info.h"
#include "comm/launch/job.h"
#include "data/history/run_attributes.h"
#include "tools/gpt_training/config.h"

namespace plait::gpt_training {

struct Place {
  comm::Job job;
  comm::DeviceChoice device;
  bool utf8 = true;
};

// Collective. Prints contradictions, dist_info, device, each rank's place in the mesh, and the configuration.
Place Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log);

// For the files. `settings`: the command line.
data::RunFacts FactsOf(const Config& config, const Place& place, const std::string& settings);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_INTRODUCTION_H_
