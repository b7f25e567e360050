// All settings of train_video, with their defaults: those of train_gru, and of videos and frame features.
#ifndef PLAIT_TOOLS_VIDEO_TRAINING_SETTINGS_H_
#define PLAIT_TOOLS_VIDEO_TRAINING_SETTINGS_H_

#include <string>
#include <vector>

#include "data/video/clip.h"
#include "tools/gru_training/settings.h"

namespace plait::video_training {

struct VideoSettings final : gru_training::GruSettings {
  VideoSettings();

  std::string data = "synthetic", splits;
  int split = 1;
  int synthetic_videos = 40, synthetic_classes = 4;
  int frame_step = 1, frame_size = 240;
  std::string network = "resnet18", weights, features_dir;

  void BindData(training::SettingsTable& table) override;
  // Steps of length one, unless --tf is given.
  absl::Status ChooseDefaults(training::SettingsTable& table) override;
  absl::Status CheckGiven(const training::SettingsTable& table) const override;
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override;

  bool synthetic() const { return data == "synthetic"; }
  data::ClipOptions clip() const { return {sequence_length, frame_step, frame_size}; }
};

}  // namespace plait::video_training

#endif  // PLAIT_TOOLS_VIDEO_TRAINING_SETTINGS_H_
