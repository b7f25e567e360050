#include "tools/gpt_generation/saved_gpt.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/text/byte_pair_tokenizer.h"
#include "models/gpt/safetensors.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/pieces_of_tensor.h"
#include "parallel/checkpoint/step_folders.h"
#include "tools/gpt_training/saved_model.h"

namespace plait::gpt_generation {
namespace {

absl::StatusOr<parallel::Checkpoint> OpenNewest(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(folder) / "index.h5", ignored)) {
    return parallel::Checkpoint::Open(folder);
  }
  PLAIT_ASSIGN_OR_RETURN(const std::string newest, parallel::FindLatestCheckpoint(folder));
  return parallel::Checkpoint::Open(newest);
}

// As a checkpoint has it: of the type that the optimizer steps.
absl::StatusOr<at::ScalarType> StoredType(const parallel::Checkpoint& checkpoint) {
  for (const parallel::TensorSpec& tensor : checkpoint.tensors()) {
    if (tensor.group != "model") continue;
    return tensor.dtype == at::kDouble ? at::kDouble : at::kFloat;
  }
  return absl::DataLossError(absl::StrCat(checkpoint.folder(), ": holds no model"));
}

absl::Status ReadParameters(parallel::Checkpoint& checkpoint, const gpt::Gpt& model) {
  const at::NoGradGuard no_grad;
  PLAIT_ASSIGN_OR_RETURN(const at::ScalarType stored, StoredType(checkpoint));
  for (const models::ParameterUnit& unit : model.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      const at::Tensor values = at::empty(parameter.tensor.sizes(), stored);
      PLAIT_RETURN_IF_ERROR(
          parallel::ReadTensor(checkpoint, absl::StrCat("model/", parameter.name), 0, values));
      models::Materialize(parameter.tensor, values.to(parameter.tensor.scalar_type()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SavedGpt> LoadCheckpoint(const std::string& folder, const std::string& bpe_folder,
                                        c10::ScalarType type) {
  PLAIT_ASSIGN_OR_RETURN(parallel::Checkpoint checkpoint, OpenNewest(folder));
  PLAIT_ASSIGN_OR_RETURN(const gpt_training::SavedModel saved, gpt_training::SavedModelOf(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<data::Tokenizer> tokenizer,
                         gpt_training::TokenizerOf(saved, bpe_folder));
  gpt::Gpt model(saved.options, at::TensorOptions(at::kMeta).dtype(type));
  PLAIT_RETURN_IF_ERROR(ReadParameters(checkpoint, model));
  return SavedGpt{.model = std::move(model),
                  .tokenizer = std::move(tokenizer),
                  .source = absl::StrCat(checkpoint.folder(), ", after step ", checkpoint.step())};
}

absl::StatusOr<SavedGpt> LoadHuggingFace(const std::string& folder, const std::string& bpe_folder,
                                         c10::ScalarType type) {
  PLAIT_ASSIGN_OR_RETURN(const gpt::HuggingFaceGpt2 files, gpt::HuggingFaceGpt2::Open(folder));
  PLAIT_ASSIGN_OR_RETURN(data::BytePairTokenizer pairs,
                         data::BytePairTokenizer::Load(bpe_folder.empty() ? folder : bpe_folder));
  // Some models have rows beyond the vocabulary, to round their number.
  if (pairs.vocabulary_size() > files.options().vocab_size) {
    return absl::FailedPreconditionError(absl::StrCat(folder, ": the model has ", files.options().vocab_size,
                                                      " tokens, its vocabulary ", pairs.vocabulary_size()));
  }
  gpt::Gpt model(files.options(), at::TensorOptions(type));
  PLAIT_RETURN_IF_ERROR(files.ReadAll(model));
  return SavedGpt{.model = std::move(model),
                  .tokenizer = std::make_unique<data::BytePairTokenizer>(std::move(pairs)),
                  .source = folder};
}

}  // namespace plait::gpt_generation
