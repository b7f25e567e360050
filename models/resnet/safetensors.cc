#include "models/resnet/safetensors.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "data/safetensors/model.h"
#include "models/hugging_face/safetensors.h"

namespace plait::resnet {
namespace {

// Names and element order are those of the state dict.
std::vector<hugging_face::FileTensor> Layout(const std::string& name, const at::Tensor& parameter) {
  return {hugging_face::AsItIs(name, parameter)};
}

class Files final : public hugging_face::Weights {
 public:
  explicit Files(data::safetensors::Model files) : Weights(std::move(files), Layout) {}
};

bool IsSkipped(const std::string& name) { return absl::EndsWith(name, ".num_batches_tracked"); }

}  // namespace

absl::Status ReadSafetensors(const std::string& path, const ResNet& resnet) {
  PLAIT_ASSIGN_OR_RETURN(data::safetensors::Model files, data::safetensors::Model::Open(path));
  const std::set<std::string> known = hugging_face::NamesOf(resnet, Layout);
  PLAIT_RETURN_IF_ERROR(
      base::Prefixed(hugging_face::CheckNames(files, known, "this ResNet", IsSkipped), path));
  return Files(std::move(files)).ReadAll(resnet);
}

}  // namespace plait::resnet
