// What a run says first: where it runs, on what, with which settings.
#ifndef PLAIT_TOOLS_CNN_TRAINING_INTRODUCTION_H_
#define PLAIT_TOOLS_CNN_TRAINING_INTRODUCTION_H_

#include <string>

#include "base/log.h"
#include "comm/device_mesh.h"
#include "tools/cnn_training/config.h"
#include "tools/training_program/introduction.h"

namespace plait::cnn_training {

using training_program::Place;

// Collective. Prints the place (training_program) and the configuration.
Place Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log);

// For the files. `settings`: the command line.
data::RunFacts FactsOf(const Config& config, const Place& place, const std::string& settings);

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_INTRODUCTION_H_
