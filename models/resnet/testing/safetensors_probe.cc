// The program that torchvision_test.py runs: safetensors_probe NAME WEIGHTS FRAMES TYPE OUT
// The network NAME (resnet18, ...) with WEIGHTS (safetensors or .pt) on {"pixels"} of FRAMES, (n, rows, columns, 3),
// in float32 or float64; writes {"inputs", "scores"}.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "data/safetensors/file.h"
#include "data/safetensors/writer.h"
#include "models/resnet/resnet.h"
#include "models/resnet/safetensors.h"
#include "models/resnet/torch_script.h"

namespace plait::resnet {
namespace {

namespace st = data::safetensors;

absl::Status Run(const std::string& name, const std::string& weights, const std::string& frames,
                 const std::string& type, const std::string& out) {
  const at::NoGradGuard no_grad;
  PLAIT_ASSIGN_OR_RETURN(const ResNetOptions options, ResNetNamed(name));
  const bool wide = type == "float64";
  ResNet resnet(options, wide ? at::kDouble : at::kFloat);
  PLAIT_RETURN_IF_ERROR(absl::EndsWith(weights, ".pt") ? ReadTorchScript(weights, resnet)
                                                       : ReadSafetensors(weights, resnet));
  PLAIT_ASSIGN_OR_RETURN(const st::File file, st::File::Open(frames));
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView view, file.Find("pixels"));
  const at::Tensor pixels = at::empty(view.info.shape, at::kByte);
  PLAIT_RETURN_IF_ERROR(file.ReadInto("pixels", view.info, pixels.mutable_data_ptr()));
  const at::Tensor inputs = ImageNetInputs(pixels);
  const at::Tensor scores = resnet.Forward(inputs.to(wide ? at::kDouble : at::kFloat));
  return st::WriteFile(out,
                       {{{"inputs", {st::DType::kF32, inputs.sizes().vec()}, inputs.const_data_ptr()},
                         {"scores",
                          {wide ? st::DType::kF64 : st::DType::kF32, scores.sizes().vec()},
                          scores.const_data_ptr()}}},
                       {});
}

}  // namespace
}  // namespace plait::resnet

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const absl::Status status = plait::resnet::Run(argv[1], argv[2], argv[3], argv[4], argv[5]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
