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
  // In float32. Weights of the settings' file, or drawn from their seed. Errors begin with --weights. Local.
  static absl::StatusOr<FrameNetwork> Open(const VideoSettings& settings, at::Device device);

  // "resnet18, weights 0123456789abcdef": the same where all parameters have the same bits.
  const std::string& text() const { return text_; }

  // The scores of each frame, (frames, 1000): inputs as torchvision's preset ImageClassification makes them of frames
  // that have their size. Frames that the clip lacks are black ones before it.
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
