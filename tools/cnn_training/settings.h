// All settings of train_cnn, with their defaults: those of PyTorch's FSDP example on MNIST, but with
// AdamW at 1e-3 as optimizer.
#ifndef PLAIT_TOOLS_CNN_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_CNN_TRAINING_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/training/settings.h"

namespace plait::cnn_training {

struct CnnSettings final : training::Settings {
  CnnSettings() { strategy = "fsdp"; }

  std::int64_t test_batch_size = 1000;
  int epochs = 10;
  double lr = 1e-3;
  double gamma = 0.7;
  double weight_decay = 0.01;
  double dropout1 = 0.25, dropout2 = 0.5;
  std::string data;
  std::int64_t max_samples = 0;
  std::string save_model;

  void Bind(training::SettingsTable& table) override;
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override;
};

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_SETTINGS_H_
