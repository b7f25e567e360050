// Reads weights of torchvision's ResNets from TorchScript files (torch.jit.save): parameters and buffers by name. Code
// in the file is not run.
//
//   python3 -c 'import torch, torchvision
//   torch.jit.script(torchvision.models.resnet18(weights="DEFAULT")).save("resnet18.pt")'
//
//   PLAIT_RETURN_IF_ERROR(ReadTorchScript("resnet18.pt", resnet));
#ifndef PLAIT_MODELS_RESNET_TORCH_SCRIPT_H_
#define PLAIT_MODELS_RESNET_TORCH_SCRIPT_H_

#include <string>

#include "absl/status/status.h"
#include "models/resnet/resnet.h"

namespace plait::resnet {

// Values are converted to the parameters' dtype; num_batches_tracked is skipped. NotFound: the file, or a tensor in it, is missing.
// DataLoss: LibTorch cannot read the file. InvalidArgument: another shape, or a tensor that the
// network does not have. Messages name the file. Local.
absl::Status ReadTorchScript(const std::string& path, const ResNet& resnet);

}  // namespace plait::resnet

#endif  // PLAIT_MODELS_RESNET_TORCH_SCRIPT_H_
