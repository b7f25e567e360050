// Reads and writes Llama in Hugging Face's layout: a folder with config.json and model.safetensors.
//
//   PLAIT_ASSIGN_OR_RETURN(const HuggingFaceLlama files, HuggingFaceLlama::Open("llama"));
//   const Llama llama(files.options(), at::kFloat);
//   PLAIT_RETURN_IF_ERROR(files.ReadAll(llama));                // or a unit at a time: files.ReadUnit(llama, i)
//   ...
//   PLAIT_RETURN_IF_ERROR(SaveHuggingFaceLlama(llama, "my-llama"));   // AutoModelForCausalLM reads it
//
//   here                                     in files
//   tok_embeddings                           model.embed_tokens
//   layers.N.attention.{wq, wk, wv, wo}      model.layers.N.self_attn.{q, k, v, o}_proj
//   layers.N.feed_forward.{w1, w2, w3}       model.layers.N.mlp.{gate, down, up}_proj
//   layers.N.{attention_norm, ffn_norm}      model.layers.N.{input_layernorm, post_attention_layernorm}
//   norm, output                             model.norm, lm_head
//
// Hugging Face's layout pairs element i of a head with element i + width / 2 in the rotation, this model neighbouring
// elements: rows of q_proj and k_proj are permuted within each head. If config.json ties the embeddings, output.weight
// is read from model.embed_tokens, and is an independent parameter from then on. Values are converted to the
// parameters' dtype when read, and written in it. Local.
#ifndef PLAIT_MODELS_LLAMA_SAFETENSORS_H_
#define PLAIT_MODELS_LLAMA_SAFETENSORS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/safetensors/model.h"
#include "models/hugging_face/safetensors.h"
#include "models/llama/config.h"
#include "models/llama/llama.h"

namespace plait::llama {

class HuggingFaceLlama final : public hugging_face::Weights {
 public:
  // NotFound: no config.json, or neither model.safetensors nor an index of shards in the folder. DataLoss: damaged
  // files. InvalidArgument: as ConfigFrom(); files too small for the sizes in config.json; a tensor that Llama does
  // not have. Messages name the file or the folder. Tensors are read from the disk by ReadUnit() and ReadAll(), for
  // models with these options.
  static absl::StatusOr<HuggingFaceLlama> Open(const std::string& folder);

  const LlamaOptions& options() const { return config_.options; }
  bool tied() const { return config_.tied; }

 private:
  HuggingFaceLlama(const LlamaConfig& config, data::safetensors::Model files, hugging_face::Layout layout)
      : Weights(std::move(files), std::move(layout)), config_(config) {}

  LlamaConfig config_;
};

using hugging_face::SaveOptions;
absl::Status SaveHuggingFaceLlama(const Llama& llama, const std::string& folder,
                                  const SaveOptions& options = {});

}  // namespace plait::llama

#endif  // PLAIT_MODELS_LLAMA_SAFETENSORS_H_
