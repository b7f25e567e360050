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

void VideoSettings::BindData(training::SettingsTable& table) {
  table.Group("Videos");
  table.Add("data", &data,
            "folder of CLASS/NAME.avi, or of folders CLASS/NAME with pictures; \"synthetic\": made-up clips "
            "of discs "
            "that move in the direction of their class");
  table.Add(
      "splits", &splits,
      "folder of HMDB51's CLASS_test_splitN.txt; without it the last fifth of each class is for testing");
  table.Add("split", &split, "which N of --splits", OnResume::kSame);
  table.Add("synthetic_videos", &synthetic_videos, "made-up clips to train on; two fifths as many to test",
            OnResume::kSame);
  table.Add("synthetic_classes", &synthetic_classes, "directions in which discs move, 1 to 8",
            OnResume::kSame);
  table.Add(
      "frame_step", &frame_step,
      "takes every so manieth frame of a video; --sequence-length says how many: longer videos are cut, "
      "shorter ones begin in black",
      OnResume::kSame);
  table.Add("frame_size", &frame_size,
            "rows and columns of a frame: its shorter side becomes so long, and the middle square is taken",
            OnResume::kSame);
  table.Group("Frame features");
  table.Add("network", &network, "resnet18, resnet34 or resnet50: 1000 features a frame", OnResume::kSame);
  table.Add("weights", &weights,
            "of the network, as torchvision names them: safetensors, or TorchScript (.pt, .pth); without a "
            "file they "
            "are random numbers of --seed");
  table.Add("features_dir", &features_dir,
            "where features are kept, a folder that all ranks see; by default in the user's cache");
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
        "--splits: the made-up clips of --data=synthetic have a split of their own");
  }
  return GruSettings::Check(axes);
}

}  // namespace plait::video_training
