#include "models/llama/safetensors.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "models/hugging_face/config.h"

namespace plait::llama {
namespace {

namespace st = data::safetensors;
using hugging_face::FileTensor;

std::string NameInFile(const std::string& name, bool tied) {
  if (name == "output.weight") return tied ? "model.embed_tokens.weight" : "lm_head.weight";
  return absl::StrCat("model.", absl::StrReplaceAll(name, {{"tok_embeddings", "embed_tokens"},
                                                           {"attention_norm", "input_layernorm"},
                                                           {"ffn_norm", "post_attention_layernorm"},
                                                           {"attention.wq", "self_attn.q_proj"},
                                                           {"attention.wk", "self_attn.k_proj"},
                                                           {"attention.wv", "self_attn.v_proj"},
                                                           {"attention.wo", "self_attn.o_proj"},
                                                           {"feed_forward.w1", "mlp.gate_proj"},
                                                           {"feed_forward.w2", "mlp.down_proj"},
                                                           {"feed_forward.w3", "mlp.up_proj"}}));
}

// The rows of a head are pairs here, (width / 2, 2); in files all first elements precede all second ones.
at::Tensor HalvesOfHeads(const at::Tensor& weight, std::int64_t width) {
  return weight.view({-1, width / 2, 2, weight.size(1)}).transpose(1, 2);
}

hugging_face::Layout LayoutOf(const LlamaConfig& config) {
  return [config](const std::string& name, const at::Tensor& parameter) {
    FileTensor tensor = hugging_face::AsItIs(NameInFile(name, config.tied), parameter);
    if (absl::EndsWith(name, ".wq.weight") || absl::EndsWith(name, ".wk.weight")) {
      tensor.values = HalvesOfHeads(tensor.values, config.options.dim / config.options.n_heads);
    }
    return std::vector{tensor};
  };
}

// Rotary frequencies, which follow from config.json.
bool IsSkipped(const std::string& name) { return absl::EndsWith(name, ".rotary_emb.inv_freq"); }

absl::Status CheckNames(const st::Model& files, const LlamaConfig& config) {
  std::set<std::string> known =
      hugging_face::NamesOf(Llama(config.options, at::TensorOptions(at::kMeta)), LayoutOf(config));
  if (config.tied) known.insert("lm_head.weight");
  const std::string model = absl::StrCat("a Llama of ", config.options.n_layers, " layers");
  return hugging_face::CheckNames(files, known, model, IsSkipped);
}

// Transformers 5 takes a head that differs from the embedding, earlier ones take the embedding.
absl::Status CheckHead(const st::Model& files) {
  return hugging_face::CheckTied(files, "lm_head.weight", "model.embed_tokens.weight",
                                 "config.json has \"tie_word_embeddings\": true; expected false, or no head");
}

}  // namespace

absl::StatusOr<HuggingFaceLlama> HuggingFaceLlama::Open(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, hugging_face::ReadConfig(folder));
  const absl::StatusOr<LlamaConfig> config = ConfigFrom(text);
  if (!config.ok()) return base::Prefixed(config.status(), hugging_face::ConfigPath(folder));
  PLAIT_ASSIGN_OR_RETURN(st::Model files, st::Model::Open(folder));
  PLAIT_RETURN_IF_ERROR(hugging_face::CheckSizes(files, SizesOf(config->options), folder));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckNames(files, *config), folder));
  if (config->tied) PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckHead(files), folder));
  return HuggingFaceLlama(*config, std::move(files), LayoutOf(*config));
}

absl::Status SaveHuggingFaceLlama(const Llama& llama, const std::string& folder, const SaveOptions& options) {
  const hugging_face::Layout layout = LayoutOf({.options = llama.options()});
  return hugging_face::Save(folder, hugging_face::TensorsOf(llama, layout),
                            ConfigText(llama.options(), options.special), options);
}

}  // namespace plait::llama
