// Settings of a program whose only axis beside the data's is lp, for tests.
#ifndef PLAIT_TOOLS_TRAINING_TESTING_LAYER_PARALLEL_SETTINGS_H_
#define PLAIT_TOOLS_TRAINING_TESTING_LAYER_PARALLEL_SETTINGS_H_

#include <string>
#include <vector>

#include "tools/training/settings.h"

namespace plait::training {

struct LayerParallelTestSettings final : Settings {
  LayerParallelTestSettings() {
    dtype = "float64";
    lp.force = true;
    lp.cfactor = {2};
  }
  void Bind(SettingsTable&) override {}
  absl::Status Check(const std::vector<comm::MeshAxis>&) const override { return absl::OkStatus(); }
  std::vector<std::string> mesh_axes() const override { return {"lp"}; }
  std::string default_axis() const override { return "lp"; }
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_TESTING_LAYER_PARALLEL_SETTINGS_H_
