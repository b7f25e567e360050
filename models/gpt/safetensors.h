// GPT-2 in Hugging Face's layout: config.json and model.safetensors in a folder, both ways.
//
//   PLAIT_ASSIGN_OR_RETURN(const HuggingFaceGpt2 files, HuggingFaceGpt2::Open("gpt2"));
//   const Gpt gpt(files.options(), at::kFloat);
//   PLAIT_RETURN_IF_ERROR(files.ReadAll(gpt));
//   ...
//   PLAIT_RETURN_IF_ERROR(SaveHuggingFaceGpt2(gpt, "my-gpt2"));   // AutoModelForCausalLM reads it
//
// An engine that has room for one unit reads one unit: files.ReadUnit(gpt, i). Names are read with and
// without "transformer." and written with it. Weights of c_attn, c_proj and c_fc lie transposed in files,
// (in, out). Masks ("attn.bias", "attn.masked_bias") are skipped; "lm_head.weight", where a file has it, must
// be wte.weight. Numbers are converted to the parameters' type, and written in it.
//
// A model without biases is written with biases of zero, which is the same function to every reader, and with
// "bias": false in config.json, which makes it one without biases again here. Local.
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
  // NotFound: no config.json or no model in the folder (model.safetensors, or shards with an index).
  // DataLoss: damaged files. InvalidArgument: as OptionsFromConfig(); a tensor that GPT-2 does not have; a
  // head of its own; biases that are not zero where config.json says that there are none. Every message names
  // the file. Other tensors are read from the disk by ReadUnit() and ReadAll(), for models of these options
  // (dropout aside).
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
