#include "models/resnet/torch_script.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::resnet {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

// The first line of LibTorch's message, without the stack trace.
std::string FirstLine(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

absl::StatusOr<Tensors> TensorsOf(const std::string& path) {
  try {
    const torch::jit::Module module = torch::jit::load(path, at::kCPU);
    Tensors tensors;
    for (const auto& parameter : module.named_parameters()) tensors[parameter.name] = parameter.value;
    for (const auto& buffer : module.named_buffers()) tensors[buffer.name] = buffer.value;
    return tensors;
  } catch (const c10::Error& error) {
    return absl::DataLossError(
        absl::StrCat("cannot be read as TorchScript (", FirstLine(error),
                     "); expected a file of torch.jit.save. A state dict of torch.save cannot be read: "
                     "safetensors.torch.save_file writes one that is read here"));
  }
}

absl::Status Copy(const models::ParameterSpec& to, Tensors& tensors) {
  const auto found = tensors.find(to.name);
  if (found == tensors.end()) return absl::NotFoundError(absl::StrCat("has no \"", to.name, "\""));
  const at::Tensor& from = found->second;
  if (from.sizes() != to.tensor.sizes()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", to.name, "\" has shape ", at::str(from.sizes()),
                                                   "; expected ", at::str(to.tensor.sizes())));
  }
  to.tensor.detach().copy_(from.detach());
  tensors.erase(found);
  return absl::OkStatus();
}

absl::Status CopyAll(Tensors tensors, const ResNet& resnet) {
  for (const models::ParameterUnit& unit : resnet.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      PLAIT_RETURN_IF_ERROR(Copy(parameter, tensors));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (absl::EndsWith(name, ".num_batches_tracked")) continue;
    return absl::InvalidArgumentError(absl::StrCat("holds \"", name, "\", which this ResNet does not have"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadTorchScript(const std::string& path, const ResNet& resnet) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return absl::NotFoundError(path + ": no such file");
  absl::StatusOr<Tensors> tensors = TensorsOf(path);
  if (!tensors.ok()) return base::Prefixed(tensors.status(), path);
  return base::Prefixed(CopyAll(*std::move(tensors), resnet), path);
}

}  // namespace plait::resnet
