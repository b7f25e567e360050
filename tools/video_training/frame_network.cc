#include "tools/video_training/frame_network.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "models/resnet/safetensors.h"
#include "models/resnet/torch_script.h"

namespace plait::video_training {
namespace {

// In one pass: the largest activations of 240 x 240 frames take 15 MB each.
constexpr std::int64_t kFramesAtOnce = 8;

absl::Status ReadWeights(const std::string& file, const resnet::ResNet& network) {
  const std::string path = base::FromUser(file);
  const bool script = absl::EndsWith(path, ".pt") || absl::EndsWith(path, ".pth");
  return base::Prefixed(
      script ? resnet::ReadTorchScript(path, network) : resnet::ReadSafetensors(path, network), "--weights");
}

std::uint64_t DigestOf(const resnet::ResNet& network) {
  std::uint64_t digest = 0;
  for (const models::ParameterUnit& unit : network.units()) {
    for (const models::ParameterSpec& one : unit.parameters) {
      const at::Tensor values = one.tensor.detach().contiguous();
      const std::string_view bytes(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
      digest = base::DeriveSeed(base::DeriveSeed(digest, one.name), bytes);
    }
  }
  return digest;
}

}  // namespace

FrameNetwork::FrameNetwork(resnet::ResNet network, std::string text, at::Device device)
    : network_(std::move(network)), text_(std::move(text)), device_(device) {}

absl::StatusOr<FrameNetwork> FrameNetwork::Open(const VideoSettings& settings, at::Device device) {
  PLAIT_ASSIGN_OR_RETURN(const resnet::ResNetOptions options, resnet::ResNetNamed(settings.network));
  at::manual_seed(settings.seed);
  resnet::ResNet network(options, at::kFloat);
  if (!settings.weights.empty()) PLAIT_RETURN_IF_ERROR(ReadWeights(settings.weights, network));
  std::string text =
      absl::StrCat(settings.network, settings.weights.empty() ? ", random weights " : ", weights ",
                   absl::Hex(DigestOf(network), absl::kZeroPad16));
  network.module()->to(device);
  return FrameNetwork(std::move(network), std::move(text), device);
}

at::Tensor FrameNetwork::Scores(const std::uint8_t* pixels, std::int64_t frames, std::int64_t size) {
  const at::NoGradGuard no_grad;
  // from_blob takes no const pointer; the pixels are only read.
  const at::Tensor view =
      at::from_blob(const_cast<std::uint8_t*>(pixels), {frames, size, size, 3}, at::kByte);
  return network_.Forward(resnet::ImageNetInputs(view.to(device_))).cpu();
}

data::FrameFeatures FrameNetwork::FeaturesOf(const data::Clip& clip, std::int64_t frames) {
  data::FrameFeatures features = {frames, network_.options().classes, {}};
  features.values.reserve(features.frames * features.features);
  const auto append = [&](const at::Tensor& scores) {
    const float* values = scores.const_data_ptr<float>();
    features.values.insert(features.values.end(), values, values + scores.numel());
  };
  const std::int64_t frame_bytes = clip.size * clip.size * 3;
  if (clip.frames < frames) {
    const at::Tensor black = Scores(std::vector<std::uint8_t>(frame_bytes).data(), 1, clip.size);
    for (std::int64_t frame = clip.frames; frame < frames; ++frame) append(black);
  }
  for (std::int64_t first = 0; first < clip.frames; first += kFramesAtOnce) {
    const std::int64_t count = std::min(kFramesAtOnce, clip.frames - first);
    append(Scores(clip.pixels.data() + first * frame_bytes, count, clip.size));
  }
  return features;
}

}  // namespace plait::video_training
