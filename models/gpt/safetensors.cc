#include "models/gpt/safetensors.h"

#include <ATen/ops/zeros.h>

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "models/hugging_face/config.h"

namespace plait::gpt {
namespace {

namespace st = data::safetensors;
using hugging_face::FileTensor;

constexpr absl::string_view kPrefix = "transformer.", kHead = "lm_head.weight", kEmbedding = "wte.weight";

// Hugging Face's GPT-2 has Conv1D layers, whose weights are (in, out).
bool IsTransposed(absl::string_view parameter) {
  return absl::EndsWith(parameter, ".c_attn.weight") || absl::EndsWith(parameter, ".c_proj.weight") ||
         absl::EndsWith(parameter, ".c_fc.weight");
}

bool IsMask(absl::string_view name) {
  return absl::EndsWith(name, ".attn.bias") || absl::EndsWith(name, ".attn.masked_bias");
}

// The layout with `prefix` in place of kPrefix.
hugging_face::Layout LayoutWith(const std::string& prefix) {
  return [prefix](const std::string& name, const at::Tensor& parameter) {
    const std::string in_file = absl::StrCat(prefix, absl::StripPrefix(name, kPrefix));
    return std::vector{hugging_face::AsItIs(in_file, IsTransposed(name) ? parameter.t() : parameter)};
  };
}

// "x.weight" -> "x.bias"; empty for embeddings, which have none.
std::string BiasOf(absl::string_view parameter) {
  if (absl::EndsWith(parameter, "wte.weight") || absl::EndsWith(parameter, "wpe.weight")) return "";
  return absl::ConsumeSuffix(&parameter, ".weight") ? absl::StrCat(parameter, ".bias") : "";
}

absl::Status CheckNames(const st::Model& files, GptOptions options, const std::string& prefix) {
  options.bias = true;
  std::set<std::string> known =
      hugging_face::NamesOf(Gpt(options, at::TensorOptions(at::kMeta)), LayoutWith(prefix));
  known.emplace(kHead);
  return hugging_face::CheckNames(files, known, absl::StrCat("a GPT-2 of ", options.n_layer, " layers"),
                                  IsMask);
}

absl::Status CheckHead(const st::Model& files, const std::string& prefix) {
  return hugging_face::CheckTied(files, std::string(kHead), absl::StrCat(prefix, kEmbedding),
                                 "Plait's GPT has a tied head");
}

absl::Status CheckNoBiases(const st::Model& files) {
  for (const std::string& name : files.Names()) {
    if (!absl::EndsWith(name, ".bias") || IsMask(name)) continue;
    PLAIT_ASSIGN_OR_RETURN(const st::TensorView view, files.Find(name));
    const auto* bytes = static_cast<const char*>(view.data);
    for (std::int64_t i = 0; i < *st::ByteCount(view.info); ++i) {
      if (bytes[i] != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(st::Quoted(name), " is not zero, but config.json says \"bias\": false"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HuggingFaceGpt2> HuggingFaceGpt2::Open(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, hugging_face::ReadConfig(folder));
  const absl::StatusOr<GptOptions> options = OptionsFromConfig(text);
  if (!options.ok()) return base::Prefixed(options.status(), hugging_face::ConfigPath(folder));
  PLAIT_ASSIGN_OR_RETURN(st::Model files, st::Model::Open(folder));
  PLAIT_RETURN_IF_ERROR(hugging_face::CheckSizes(files, SizesOf(*options), folder));
  const std::string prefix(files.Has(kEmbedding) ? "" : kPrefix);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckNames(files, *options, prefix), folder));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckHead(files, prefix), folder));
  if (!options->bias) PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckNoBiases(files), folder));
  return HuggingFaceGpt2(*options, std::move(files), LayoutWith(prefix));
}

absl::Status SaveHuggingFaceGpt2(const Gpt& gpt, const std::string& folder, const SaveOptions& options) {
  if (gpt.options().moe.used()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": a GPT with experts cannot be written: GPT-2's files have none"));
  }
  std::vector<FileTensor> tensors;
  for (FileTensor& tensor : hugging_face::TensorsOf(gpt, LayoutWith(std::string(kPrefix)))) {
    const std::string bias = gpt.options().bias ? "" : BiasOf(tensor.name);
    const at::Tensor& values = tensor.values;
    const at::Tensor zeros = bias.empty() ? at::Tensor() : at::zeros({values.size(-1)}, values.options());
    tensors.push_back(std::move(tensor));
    if (zeros.defined()) tensors.push_back(hugging_face::AsItIs(bias, zeros));
  }
  return hugging_face::Save(folder, tensors, ConfigText(gpt.options(), options.special), options);
}

}  // namespace plait::gpt
