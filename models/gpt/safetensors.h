// Reads and writes GPT-2 in Hugging Face's layout: a folder with config.json and model.safetensors.
//
//   PLAIT_ASSIGN_OR_RETURN(const HuggingFaceGpt2 files, HuggingFaceGpt2::Open("gpt2"));
//   const Gpt gpt(files.options(), at::kFloat);
//   PLAIT_RETURN_IF_ERROR(files.ReadAll(gpt));
//   ...
//   PLAIT_RETURN_IF_ERROR(SaveHuggingFaceGpt2(gpt, "my-gpt2"));   // AutoModelForCausalLM reads it
//
// To read one unit at a time: files.ReadUnit(gpt, i). Names are read with or without the prefix "transformer." and
// written with it. Weights of c_attn, c_proj and c_fc are stored transposed, (in, out). Masks ("attn.bias",
// "attn.masked_bias") are skipped; "lm_head.weight", if present, must equal wte.weight. Values are converted to the
// parameters' dtype when read, and written in it.
//
// A model without biases is written with zero biases, so that every reader computes the same function, and with
// "bias": false in config.json, so that it is read here as a model without biases. Local.
#ifndef PLAIT_MODELS_GPT_SAFETENSORS_H_
#define PLAIT_MODELS_GPT_SAFETENSORS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/safetensors/model.h"
#include "models/gpt/config.h"
#include "models/gpt/gpt.h"
#include "models/hugging_face/safetensors.h"

namespace plait::gpt {

class HuggingFaceGpt2 final : public hugging_face::Weights {
 public:
  // NotFound: no config.json, or neither model.safetensors nor an index of shards in the folder. DataLoss: damaged
  // files. InvalidArgument: as OptionsFromConfig(); files too small for the sizes in config.json; a tensor that GPT-2
  // does not have; an untied head; nonzero biases although config.json says "bias": false. Messages name the file or
  // the folder. Other tensors are read from the disk by ReadUnit() and ReadAll(), for models with these options (except
  // dropout).
  static absl::StatusOr<HuggingFaceGpt2> Open(const std::string& folder);

  const GptOptions& options() const { return options_; }

 private:
  HuggingFaceGpt2(const GptOptions& options, data::safetensors::Model files, hugging_face::Layout layout)
      : Weights(std::move(files), std::move(layout)), options_(options) {}

  GptOptions options_;
};

using hugging_face::SaveOptions;
absl::Status SaveHuggingFaceGpt2(const Gpt& gpt, const std::string& folder, const SaveOptions& options = {});

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_SAFETENSORS_H_
