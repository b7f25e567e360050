// Reads weights of torchvision's ResNets from safetensors files with the names of torchvision's state dict.
//
//   python3 -c 'import torchvision, safetensors.torch as st
//   st.save_file(torchvision.models.resnet18(weights="DEFAULT").state_dict(), "resnet18.safetensors")'
//
//   PLAIT_RETURN_IF_ERROR(ReadSafetensors("resnet18.safetensors", resnet));
#ifndef PLAIT_MODELS_RESNET_SAFETENSORS_H_
#define PLAIT_MODELS_RESNET_SAFETENSORS_H_

#include <string>

#include "absl/status/status.h"
#include "models/resnet/resnet.h"

namespace plait::resnet {

// `path`: a file, or a folder with model.safetensors or shards. Values are converted to the parameters' dtype;
// num_batches_tracked is skipped. NotFound: no such file, or a tensor is missing. DataLoss: a damaged file.
// InvalidArgument: another shape, a dtype that is not floating, or a tensor that the network does not have. Local.
absl::Status ReadSafetensors(const std::string& path, const ResNet& resnet);

}  // namespace plait::resnet

#endif  // PLAIT_MODELS_RESNET_SAFETENSORS_H_
