// A ResNet that makes features of video frames.
//
//   PLAIT_ASSIGN_OR_RETURN(FrameNetwork network, FrameNetwork::Open(settings, run.device));
//   const data::FrameFeatures features = network.FeaturesOf(clip, 128);
#ifndef PLAIT_TOOLS_VIDEO_TRAINING_FRAME_NETWORK_H_
#define PLAIT_TOOLS_VIDEO_TRAINING_FRAME_NETWORK_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "data/video/clip.h"
#include "data/video/feature_file.h"
#include "models/resnet/resnet.h"
#include "tools/video_training/settings.h"

namespace plait::video_training {

class FrameNetwork {
 public:
  // A float32 network on `device` with the weights of --weights, or random ones from --seed. Errors of the file begin
  // with "--weights". Local.
  static absl::StatusOr<FrameNetwork> Open(const VideoSettings& settings, at::Device device);

  // "resnet18, weights 0123456789abcdef", with a hash of all parameters.
  const std::string& text() const { return text_; }

  // Logits of each frame, (frames, 1000), with inputs normalized as by torchvision's preset ImageClassification;
  // frames are not resized. A shorter clip is padded in front with black frames.
  data::FrameFeatures FeaturesOf(const data::Clip& clip, std::int64_t frames);

 private:
  FrameNetwork(resnet::ResNet network, std::string text, at::Device device);
  at::Tensor Scores(const std::uint8_t* pixels, std::int64_t frames, std::int64_t size);

  resnet::ResNet network_;
  std::string text_;
  at::Device device_;
};

}  // namespace plait::video_training

#endif  // PLAIT_TOOLS_VIDEO_TRAINING_FRAME_NETWORK_H_
