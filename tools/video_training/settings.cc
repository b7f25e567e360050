#include "tools/video_training/settings.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/resnet/resnet.h"

namespace plait::video_training {

using training::AtLeast;
using training::OnResume;

VideoSettings::VideoSettings() {
  hidden_size = 1000;
  global_batch_size = 20;
  log_interval = 1;
  gru = "implicit";
}

absl::Status VideoSettings::ChooseDefaults(training::SettingsTable& table) {
  return table.SetDefault("tf", absl::StrCat(sequence_length));
}

absl::Status VideoSettings::CheckGiven(const training::SettingsTable& table) const {
  if (splits.empty()) PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("split", "--splits=DIR"));
  PLAIT_RETURN_IF_ERROR(synthetic() ? table.CheckNoneGiven("frame_step", "--data=DIR with videos")
                                    : table.CheckNoneGiven("synthetic_", "--data=synthetic"));
  return GruSettings::CheckGiven(table);
}

void VideoSettings::BindData(training::SettingsTable& table) {
  table.Group("Videos");
  table.Add("data", &data,
            "directory of CLASS/NAME.avi, or of directories CLASS/NAME with pictures; \"synthetic\": "
            "synthetic clips "
            "of discs "
            "that move in the direction of their class");
  table.Add(
      "splits", &splits,
      "directory of HMDB51's CLASS_test_splitN.txt; without it the last fifth of each class is for testing");
  table.Add("split", &split, "which N of --splits", OnResume::kSame);
  table.Add("synthetic_videos", &synthetic_videos, "synthetic clips to train on; two fifths as many to test",
            OnResume::kSame);
  table.Add("synthetic_classes", &synthetic_classes, "directions in which discs move, 1 to 8",
            OnResume::kSame);
  table.Add("frame_step", &frame_step,
            "takes every N-th frame of a video, up to --sequence-length frames: longer videos are cut, "
            "shorter ones begin in black",
            OnResume::kSame);
  table.Add("frame_size", &frame_size,
            "height and width of a frame: its shorter side is resized to it, and the center square cropped",
            OnResume::kSame);
  table.Group("Frame features");
  table.Add("network", &network, "resnet18, resnet34 or resnet50: 1000 features a frame", OnResume::kSame);
  table.Add("weights", &weights,
            "of the network, as torchvision names them: safetensors, or TorchScript (.pt, .pth); without a "
            "file they "
            "are random numbers of --seed");
  table.Add("features_dir", &features_dir,
            "where features are kept, a directory that all ranks see; by default in the user's cache");
}

absl::Status VideoSettings::Check(const std::vector<comm::MeshAxis>& axes) const {
  PLAIT_RETURN_IF_ERROR(base::Prefixed(resnet::ResNetNamed(network).status(), "--network"));
  PLAIT_RETURN_IF_ERROR(AtLeast("split", split, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("synthetic-videos", synthetic_videos, 1));
  PLAIT_RETURN_IF_ERROR(training::Between("synthetic-classes", synthetic_classes, 1, 8));
  PLAIT_RETURN_IF_ERROR(AtLeast("frame-step", frame_step, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("frame-size", frame_size, 32));
  if (synthetic() && !splits.empty()) {
    return absl::InvalidArgumentError(
        "--splits: the synthetic clips of --data=synthetic have a split of their own");
  }
  return GruSettings::Check(axes);
}

}  // namespace plait::video_training
