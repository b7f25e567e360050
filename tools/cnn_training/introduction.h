// What a run says first: where it runs, on what, with which settings.
#ifndef PLAIT_TOOLS_CNN_TRAINING_INTRODUCTION_H_
#define PLAIT_TOOLS_CNN_TRAINING_INTRODUCTION_H_

#include "base/log.h"
#include "comm/device_mesh.h"
#include "comm/launch/job.h"
#include "data/history/run_attributes.h"
#include "tools/cnn_training/config.h"

namespace plait::cnn_training {

// Collective. Prints contradictions of the launch, dist_info, device, each rank's place in the mesh, and the
// configuration; returns what the ranks know of the job together.
comm::Job Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log);

// For the files. `settings`: the command line.
data::RunFacts FactsOf(const Config& config, const comm::Job& job, const std::string& settings);

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_INTRODUCTION_H_
