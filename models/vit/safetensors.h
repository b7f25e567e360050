// Reads and writes vision transformers in Hugging Face's layout (ViTForImageClassification): a folder with config.json
// and model.safetensors.
//
//   PLAIT_ASSIGN_OR_RETURN(const HuggingFaceVit files, HuggingFaceVit::Open("vit-base-patch16-224"));
//   const Vit vit(files.options(), at::kFloat);
//   PLAIT_RETURN_IF_ERROR(files.ReadAll(vit));                // or a unit at a time: files.ReadUnit(vit, i)
//   ...
//   PLAIT_RETURN_IF_ERROR(SaveHuggingFaceVit(vit, "my-vit", class_names));
//
//   here                              in files
//   cls_token, pos_embed              vit.embeddings.{cls_token, position_embeddings}
//   patch_embed.proj                  vit.embeddings.patch_embeddings.projection
//   blocks.N.norm1, norm2             vit.encoder.layer.N.{layernorm_before, layernorm_after}
//   blocks.N.attn.qkv                 vit.encoder.layer.N.attention.attention.{query, key, value}: a third each
//   blocks.N.attn.proj                vit.encoder.layer.N.attention.output.dense
//   blocks.N.mlp.fc1, fc2             vit.encoder.layer.N.{intermediate, output}.dense
//   norm, head                        vit.layernorm, classifier
//
// The layout requires a class token and heads * head_dim == dim. A pooler is skipped. Values are converted to the
// parameters' dtype when read, and written in it. Local.
#ifndef PLAIT_MODELS_VIT_SAFETENSORS_H_
#define PLAIT_MODELS_VIT_SAFETENSORS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/safetensors/model.h"
#include "models/hugging_face/safetensors.h"
#include "models/vit/config.h"
#include "models/vit/vit.h"

namespace plait::vit {

class HuggingFaceVit final : public hugging_face::Weights {
 public:
  // NotFound: no config.json, or neither model.safetensors nor an index of shards in the folder. DataLoss: damaged
  // files. InvalidArgument: as OptionsFromConfig() and ClassNamesFromConfig(); files too small for the sizes in
  // config.json; a tensor that a ViT does not have. Messages name the file or the folder. Tensors are read from the
  // disk by ReadUnit() and ReadAll(), for models with these options.
  static absl::StatusOr<HuggingFaceVit> Open(const std::string& folder);

  const VitOptions& options() const { return options_; }
  // One for each class; empty: without a name.
  const std::vector<std::string>& class_names() const { return class_names_; }

 private:
  HuggingFaceVit(const VitOptions& options, std::vector<std::string> class_names,
                 data::safetensors::Model files);

  VitOptions options_;
  std::vector<std::string> class_names_;
};

// InvalidArgument if the layout cannot represent the model: Pool::kMean, or heads * head_dim != dim.
absl::Status CheckLayout(const VitOptions& options);
hugging_face::Layout HuggingFaceLayout();

using hugging_face::SaveOptions;
// Writes into an existing folder. Errors of CheckLayout and of hugging_face::Save.
absl::Status SaveHuggingFaceVit(const Vit& vit, const std::string& folder,
                                const std::vector<std::string>& class_names = {},
                                const SaveOptions& options = {});

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_SAFETENSORS_H_
