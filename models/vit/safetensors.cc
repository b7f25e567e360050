#include "models/vit/safetensors.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "models/hugging_face/config.h"

namespace plait::vit {
namespace {

namespace st = data::safetensors;
using hugging_face::FileTensor;

constexpr absl::string_view kQkv = "attention.attention.qkv.";

// The name in the file; queries, keys and values keep "qkv" here.
std::string NameInFile(absl::string_view name) {
  if (absl::ConsumePrefix(&name, "head.")) return absl::StrCat("classifier.", name);
  if (absl::ConsumePrefix(&name, "norm.")) return absl::StrCat("vit.layernorm.", name);
  if (name == "cls_token") return "vit.embeddings.cls_token";
  if (name == "pos_embed") return "vit.embeddings.position_embeddings";
  return absl::StrCat(
      "vit.", absl::StrReplaceAll(name, {{"patch_embed.proj", "embeddings.patch_embeddings.projection"},
                                         {"blocks.", "encoder.layer."},
                                         {"norm1", "layernorm_before"},
                                         {"norm2", "layernorm_after"},
                                         {"attn.qkv", "attention.attention.qkv"},
                                         {"attn.proj", "attention.output.dense"},
                                         {"mlp.fc1", "intermediate.dense"},
                                         {"mlp.fc2", "output.dense"}}));
}

// The pooler is used only for ViTModel's pooled output, not for classification.
bool IsSkipped(const std::string& name) { return absl::StartsWith(name, "vit.pooler."); }

absl::Status CheckNames(const st::Model& files, const VitOptions& options) {
  const std::set<std::string> known =
      hugging_face::NamesOf(Vit(options, at::TensorOptions(at::kMeta)), HuggingFaceLayout());
  return hugging_face::CheckNames(files, known, absl::StrCat("a ViT of ", options.depth, " layers"),
                                  IsSkipped);
}

}  // namespace

hugging_face::Layout HuggingFaceLayout() {
  return [](const std::string& name, const at::Tensor& parameter) {
    const std::string in_file = NameInFile(name);
    if (!absl::StrContains(in_file, kQkv)) return std::vector{hugging_face::AsItIs(in_file, parameter)};
    std::vector<FileTensor> parts;
    const std::int64_t rows = parameter.size(0) / 3;
    for (const char* part : {"query", "key", "value"}) {
      parts.push_back(
          hugging_face::AsItIs(absl::StrReplaceAll(in_file, {{".qkv.", absl::StrCat(".", part, ".")}}),
                               parameter.narrow(0, static_cast<std::int64_t>(parts.size()) * rows, rows)));
    }
    return parts;
  };
}

HuggingFaceVit::HuggingFaceVit(const VitOptions& options, std::vector<std::string> class_names,
                               st::Model files)
    : Weights(std::move(files), HuggingFaceLayout()),
      options_(options),
      class_names_(std::move(class_names)) {}

absl::StatusOr<HuggingFaceVit> HuggingFaceVit::Open(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, hugging_face::ReadConfig(folder));
  const absl::StatusOr<VitOptions> options = OptionsFromConfig(text);
  if (!options.ok()) return base::Prefixed(options.status(), hugging_face::ConfigPath(folder));
  absl::StatusOr<std::vector<std::string>> names = ClassNamesFromConfig(text, options->classes);
  if (!names.ok()) return base::Prefixed(names.status(), hugging_face::ConfigPath(folder));
  PLAIT_ASSIGN_OR_RETURN(st::Model files, st::Model::Open(folder));
  PLAIT_RETURN_IF_ERROR(hugging_face::CheckSizes(files, SizesOf(*options), folder));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckNames(files, *options), folder));
  return HuggingFaceVit(*options, *std::move(names), std::move(files));
}

absl::Status CheckLayout(const VitOptions& options) {
  if (options.pool != Pool::kClassToken) {
    return absl::InvalidArgumentError(
        "Hugging Face's ViT has a class token; this one pools the mean of its patches");
  }
  if (options.inner_dim() == options.dim) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Hugging Face's ViT has heads of width ", options.dim,
                                                 " together; this one has ", options.inner_dim()));
}

absl::Status SaveHuggingFaceVit(const Vit& vit, const std::string& folder,
                                const std::vector<std::string>& class_names, const SaveOptions& options) {
  PLAIT_RETURN_IF_ERROR(CheckLayout(vit.options()));
  return hugging_face::Save(folder, hugging_face::TensorsOf(vit, HuggingFaceLayout()),
                            ConfigText(vit.options(), class_names), options);
}

}  // namespace plait::vit
