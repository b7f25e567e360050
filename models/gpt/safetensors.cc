#include "models/gpt/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstring>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"

namespace plait::gpt {
namespace {

namespace st = data::safetensors;

constexpr absl::string_view kPrefix = "transformer.", kHead = "lm_head.weight", kEmbedding = "wte.weight";

// GPT-2's linear layers are one-dimensional convolutions there, whose weights are (in, out).
bool IsTransposed(absl::string_view parameter) {
  return absl::EndsWith(parameter, ".c_attn.weight") || absl::EndsWith(parameter, ".c_proj.weight") ||
         absl::EndsWith(parameter, ".c_fc.weight");
}

bool IsMask(absl::string_view name) {
  return absl::EndsWith(name, ".attn.bias") || absl::EndsWith(name, ".attn.masked_bias");
}

constexpr std::pair<st::DType, at::ScalarType> kTypes[] = {{st::DType::kF32, at::kFloat},
                                                           {st::DType::kF64, at::kDouble},
                                                           {st::DType::kBF16, at::kBFloat16},
                                                           {st::DType::kF16, at::kHalf}};

absl::StatusOr<at::ScalarType> TypeOf(const st::TensorView& tensor) {
  for (const auto& [dtype, type] : kTypes) {
    if (dtype == tensor.info.dtype) return type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("is ", st::TextOf(tensor.info), "; expected a floating type: F32, F64, BF16 or F16"));
}

st::DType DTypeOf(at::ScalarType type) {
  for (const auto& [dtype, scalar_type] : kTypes) {
    if (scalar_type == type) return dtype;
  }
  PLAIT_CHECK(false) << "parameters of type " << c10::toString(type);
  return st::DType::kF32;
}

// As the file has it: with the prefix or without.
std::string NameIn(const st::Model& model, absl::string_view parameter) {
  return std::string(model.Has(parameter) ? parameter : absl::StripPrefix(parameter, kPrefix));
}

absl::Status ReadParameter(const st::Model& model, const std::string& parameter, const at::Tensor& into) {
  const std::string name = NameIn(model, parameter);
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView view, model.Find(name));
  const absl::StatusOr<at::ScalarType> type = TypeOf(view);
  if (!type.ok()) return base::Prefixed(type.status(), st::Quoted(name));
  const at::Tensor target = IsTransposed(parameter) ? into.detach().t() : into.detach();
  const at::Tensor values = at::empty(target.sizes(), *type);
  PLAIT_RETURN_IF_ERROR(model.ReadInto(name, {view.info.dtype, target.sizes().vec()}, values.data_ptr()));
  target.copy_(values);
  return absl::OkStatus();
}

// Names that a GPT-2 of these options may have, without the prefix.
std::set<std::string> KnownNames(GptOptions options) {
  options.bias = true;
  std::set<std::string> names = {std::string(kHead)};
  for (const models::ParameterUnit& unit : Gpt(options, at::TensorOptions(at::kMeta)).units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      names.insert(std::string(absl::StripPrefix(parameter.name, kPrefix)));
    }
  }
  return names;
}

// "x.weight" -> "x.bias"; empty for embeddings, which have none.
std::string BiasOf(absl::string_view parameter) {
  if (absl::EndsWith(parameter, "wte.weight") || absl::EndsWith(parameter, "wpe.weight")) return "";
  return absl::ConsumeSuffix(&parameter, ".weight") ? absl::StrCat(parameter, ".bias") : "";
}

// What is written: `tensors` point into `memory`.
struct Written {
  std::vector<st::TensorView> tensors;
  std::vector<at::Tensor> memory;

  void Add(const std::string& name, const at::Tensor& values) {
    memory.push_back(values.detach().cpu().contiguous());
    const at::Tensor& kept = memory.back();
    tensors.push_back({name, {DTypeOf(kept.scalar_type()), kept.sizes().vec()}, kept.const_data_ptr()});
  }
};

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HuggingFaceGpt2> HuggingFaceGpt2::Open(const std::string& folder) {
  const std::string config = folder + "/config.json";
  PLAIT_ASSIGN_OR_RETURN(const std::string text, data::ReadWholeFile(config));
  const absl::StatusOr<GptOptions> options = OptionsFromConfig(text);
  if (!options.ok()) return base::Prefixed(options.status(), config);
  PLAIT_ASSIGN_OR_RETURN(st::Model model, st::Model::Open(folder));
  HuggingFaceGpt2 files(*options, std::move(model));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(files.CheckNames(), folder));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(files.CheckHead(), folder));
  return files;
}

absl::Status HuggingFaceGpt2::CheckNames() const {
  const std::set<std::string> known = KnownNames(options_);
  for (const std::string& name : model_.Names()) {
    if (!known.contains(std::string(absl::StripPrefix(name, kPrefix))) && !IsMask(name)) {
      return absl::InvalidArgumentError(absl::StrCat("holds ", st::Quoted(name), ", which a GPT-2 of ",
                                                     options_.n_layer, " layers does not have"));
    }
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceGpt2::CheckHead() const {
  if (!model_.Has(kHead)) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView head, model_.Find(kHead));
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView embedding,
                         model_.Find(NameIn(model_, absl::StrCat(kPrefix, kEmbedding))));
  if (head.info == embedding.info && std::memcmp(head.data, embedding.data, *st::ByteCount(head.info)) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("lm_head.weight is not wte.weight; Plait's GPT has no head of its own");
}

absl::Status HuggingFaceGpt2::CheckNoBias(const std::string& parameter) const {
  const std::string name = NameIn(model_, parameter);
  if (parameter.empty() || !model_.Has(name)) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView view, model_.Find(name));
  const auto* bytes = static_cast<const char*>(view.data);
  for (std::int64_t i = 0; i < *st::ByteCount(view.info); ++i) {
    if (bytes[i] != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(st::Quoted(name), " is not zero, but config.json says \"bias\": false"));
    }
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceGpt2::ReadUnit(const Gpt& gpt, std::size_t unit) const {
  GptOptions options = options_;
  options.dropout = gpt.options().dropout;
  PLAIT_CHECK(options == gpt.options()) << "a model of other sizes than the files'";
  const std::vector<models::ParameterUnit> units = gpt.units();
  for (const models::ParameterSpec& parameter : units.at(unit).parameters) {
    PLAIT_CHECK(!parameter.tensor.is_meta()) << parameter.name << " has no memory";
    PLAIT_RETURN_IF_ERROR(ReadParameter(model_, parameter.name, parameter.tensor));
    if (!options.bias) PLAIT_RETURN_IF_ERROR(CheckNoBias(BiasOf(parameter.name)));
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceGpt2::ReadAll(const Gpt& gpt) const {
  for (std::int64_t unit = 0; unit <= options_.n_layer; ++unit) {
    PLAIT_RETURN_IF_ERROR(ReadUnit(gpt, static_cast<std::size_t>(unit)));
  }
  return absl::OkStatus();
}

absl::Status SaveHuggingFaceGpt2(const Gpt& gpt, const std::string& folder, const SaveOptions& options) {
  Written written;
  for (const models::ParameterUnit& unit : gpt.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      const at::Tensor& values = parameter.tensor;
      PLAIT_CHECK(!values.is_meta()) << parameter.name << " has no memory";
      written.Add(parameter.name, IsTransposed(parameter.name) ? values.detach().t() : values);
      const std::string bias = BiasOf(parameter.name);
      if (!gpt.options().bias && !bias.empty()) {
        written.Add(bias, at::zeros({values.size(0)}, values.options()));
      }
    }
  }
  PLAIT_RETURN_IF_ERROR(
      st::WriteModel(folder, written.tensors, {.max_shard_bytes = options.max_shard_bytes}));
  const std::string text = ConfigText(gpt.options());
  return data::WriteAtomically(folder + "/config.json", static_cast<std::int64_t>(text.size()),
                               [&](const std::string& partial) { return WriteText(partial, text); });
}

}  // namespace plait::gpt
