#include "models/hugging_face/safetensors.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "models/hugging_face/config.h"

namespace plait::hugging_face {
namespace {

namespace st = data::safetensors;

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

absl::Status Read(const st::Model& files, const FileTensor& tensor) {
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView view, files.Find(tensor.name));
  const absl::StatusOr<at::ScalarType> type = TypeOf(view);
  if (!type.ok())
    return base::Prefixed(type.status(), absl::StrCat(files.path(), ": ", st::Quoted(tensor.name)));
  const at::Tensor values = at::empty(tensor.shape, *type);
  PLAIT_RETURN_IF_ERROR(
      files.ReadInto(tensor.name, {view.info.dtype, tensor.shape}, values.mutable_data_ptr()));
  tensor.values.copy_(values.view(tensor.values.sizes()));
  return absl::OkStatus();
}

}  // namespace

FileTensor AsItIs(const std::string& name_in_file, const at::Tensor& parameter) {
  return {name_in_file, parameter.sizes().vec(), parameter.detach()};
}

std::vector<FileTensor> TensorsOf(const models::BlockModel& model, const Layout& layout) {
  std::vector<FileTensor> tensors;
  for (const models::ParameterUnit& unit : model.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      for (FileTensor& part : layout(parameter.name, parameter.tensor)) tensors.push_back(std::move(part));
    }
  }
  return tensors;
}

std::set<std::string> NamesOf(const models::BlockModel& model, const Layout& layout) {
  std::set<std::string> names;
  for (const FileTensor& tensor : TensorsOf(model, layout)) names.insert(tensor.name);
  return names;
}

absl::StatusOr<std::string> ModelTypeOf(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, ReadConfig(folder));
  const absl::StatusOr<Json> config = ParseConfig(text);
  if (!config.ok()) return base::Prefixed(config.status(), ConfigPath(folder));
  const Json type = config->value("model_type", Json());
  return type.is_string() ? type.get<std::string>() : type.dump();
}

absl::Status Weights::ReadUnit(const models::BlockModel& model, std::size_t unit) const {
  const std::vector<models::ParameterUnit> units = model.units();
  for (const models::ParameterSpec& parameter : units.at(unit).parameters) {
    PLAIT_CHECK(!parameter.tensor.is_meta()) << parameter.name << " has no memory";
    const models::Placement& placement = parameter.placement;
    const bool split = !placement.boxes.empty();
    const at::Tensor whole = split
                                 ? at::empty(placement.shape, parameter.tensor.options().requires_grad(false))
                                 : parameter.tensor;
    for (const FileTensor& part : layout_(parameter.name, whole)) {
      PLAIT_RETURN_IF_ERROR(Read(files_, part));
    }
    if (split) parameter.tensor.detach().copy_(models::LocalPart(whole, placement));
  }
  return absl::OkStatus();
}

absl::Status Weights::ReadAll(const models::BlockModel& model) const {
  const std::size_t units = model.units().size();
  for (std::size_t unit = 0; unit < units; ++unit) PLAIT_RETURN_IF_ERROR(ReadUnit(model, unit));
  return absl::OkStatus();
}

absl::Status CheckSizes(const st::Model& files, const models::ModelSizes& sizes, const std::string& folder) {
  // The smallest of the types that parameters may have takes two bytes.
  const models::HeldNumbers held = {.tensors = std::ssize(files.Names()), .numbers = files.total_bytes() / 2};
  return base::Prefixed(models::CheckHeld(sizes, held), ConfigPath(folder));
}

absl::Status CheckNames(const st::Model& files, const std::set<std::string>& known, const std::string& model,
                        const std::function<bool(const std::string&)>& skip) {
  for (const std::string& name : files.Names()) {
    if (!known.contains(name) && !skip(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("holds ", st::Quoted(name), ", which ", model, " does not have"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTied(const st::Model& files, const std::string& tensor, const std::string& embedding,
                       const std::string& reason) {
  if (!files.Has(tensor)) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView own, files.Find(tensor));
  PLAIT_ASSIGN_OR_RETURN(const st::TensorView tied, files.Find(embedding));
  if (own.info == tied.info && std::memcmp(own.data, tied.data, *st::ByteCount(own.info)) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(tensor, " is not ", embedding, "; ", reason));
}

absl::Status Save(const std::string& folder, const std::vector<FileTensor>& tensors,
                  const std::string& config, const SaveOptions& options) {
  std::vector<at::Tensor> memory;  // that the views point to
  std::vector<st::TensorView> views;
  for (const FileTensor& tensor : tensors) {
    PLAIT_CHECK(!tensor.values.is_meta()) << tensor.name << " has no memory";
    memory.push_back(tensor.values.detach().cpu().contiguous());
    views.push_back(
        {tensor.name, {DTypeOf(memory.back().scalar_type()), tensor.shape}, memory.back().const_data_ptr()});
  }
  st::ModelOptions files = {.max_shard_bytes = options.max_shard_bytes};
  const auto differs = [&](const std::string& name, const std::string& contents) {
    return data::ReadWholeFile(absl::StrCat(folder, "/", name)).value_or("") != contents;
  };
  bool other = differs("config.json", config);
  for (const auto& [name, contents] : options.descriptions) other = other || differs(name, contents);
  if (other) {
    files.descriptions = {"config.json"};
    for (const auto& [name, contents] : options.descriptions) files.descriptions.push_back(name);
  }
  PLAIT_RETURN_IF_ERROR(st::WriteModel(folder, views, files));
  for (const auto& [name, contents] : options.descriptions) {
    if (contents.empty()) continue;
    PLAIT_RETURN_IF_ERROR(data::WriteWholeFile(absl::StrCat(folder, "/", name), contents));
  }
  return data::WriteWholeFile(folder + "/config.json", config);
}

}  // namespace plait::hugging_face
