#include "tools/gru_training/checkpoint.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "data/checkpoint/tensor_archive.h"

namespace plait::gru_training {
namespace {

constexpr char kProgram[] = "train_gru 1";

std::string Lines(const RunSettings& settings) {
  return absl::StrJoin(settings, "\n", absl::PairFormatter("="));
}

RunSettings SettingsFrom(const std::string& lines) {
  RunSettings settings;
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    settings.insert(absl::StrSplit(line, absl::MaxSplits('=', 1)));
  }
  return settings;
}

data::DType TypeOf(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? data::DType::kFloat64 : data::DType::kFloat32;
}

// Everything that goes into the file, by its name there.
NamedTensors AllTensors(const NamedTensors& parameters, const Optimizer& optimizer) {
  NamedTensors all = optimizer.State();
  for (const auto& [name, tensor] : parameters) all.emplace_back("parameter." + name, tensor);
  return all;
}

absl::Status CheckSettings(const RunSettings& here, const RunSettings& there) {
  for (const auto& [name, value] : here) {
    const auto found = there.find(name);
    const std::string other = found == there.end() ? "nothing" : found->second;
    if (other == value) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("checkpoint of another run: %s is %s there and %s here", name, other, value));
  }
  return absl::OkStatus();
}

std::string ProgressText(const Progress& p) {
  return absl::StrCat(p.sampler.seed, " ", p.sampler.epoch, " ", p.sampler.position, " ", p.optimizer_steps,
                      " ", p.history_draws);
}

absl::StatusOr<Progress> ProgressFrom(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  Progress p;
  if (words.size() == 5 && absl::SimpleAtoi(words[0], &p.sampler.seed) &&
      absl::SimpleAtoi(words[1], &p.sampler.epoch) && absl::SimpleAtoi(words[2], &p.sampler.position) &&
      absl::SimpleAtoi(words[3], &p.optimizer_steps) && absl::SimpleAtoi(words[4], &p.history_draws)) {
    return p;
  }
  return absl::DataLossError("the checkpoint's progress cannot be read");
}

absl::Status CheckArchive(const data::TensorArchive& archive, const RunSettings& settings,
                          Progress& progress) {
  const absl::StatusOr<std::string> program = archive.Text("program");
  if (!program.ok() && !absl::IsNotFound(program.status())) return program.status();
  if (!program.ok() || *program != kProgram) {
    return absl::DataLossError(absl::StrCat("not a checkpoint of this program and format: expected '",
                                            kProgram, "', found '", program.ok() ? *program : "", "'"));
  }
  PLAIT_ASSIGN_OR_RETURN(const std::string run, archive.Text("run"));
  PLAIT_RETURN_IF_ERROR(CheckSettings(settings, SettingsFrom(run)));
  PLAIT_ASSIGN_OR_RETURN(const std::string text, archive.Text("progress"));
  PLAIT_ASSIGN_OR_RETURN(progress, ProgressFrom(text));
  return archive.Verify();
}

// A message of the archive names the file already.
absl::Status Naming(const std::string& path, const absl::Status& status) {
  return absl::StrContains(status.message(), path) ? status : base::Prefixed(status, path);
}

}  // namespace

RunSettings SettingsOf(const Config& config, int ranks, std::int64_t channels, std::int64_t classes,
                       std::int64_t samples) {
  return {{"batch_size", absl::StrCat(config.batch_size)},
          {"cell", TrainsImplicit(config, ranks) ? "implicit" : "classic"},
          {"channels", absl::StrCat(channels)},
          {"classes", absl::StrCat(classes)},
          {"dtype", config.dtype},
          {"hidden_size", absl::StrCat(config.hidden_size)},
          {"num_layers", absl::StrCat(config.num_layers)},
          {"optimizer", config.use_sgd ? "sgd" : "adam"},
          {"seed", absl::StrCat(config.seed)},
          {"sequence_length", absl::StrCat(config.sequence_length)},
          {"tf", absl::StrFormat("%.17g", config.tf)},
          {"training_samples", absl::StrCat(samples)}};
}

std::string CheckpointFile(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path + "/last.h5" : path;
}

absl::Status SaveCheckpoint(const std::string& path, const RunSettings& settings, const Progress& progress,
                            const NamedTensors& parameters, const Optimizer& optimizer) {
  std::vector<data::TensorView> views;
  std::vector<at::Tensor> kept;
  for (const auto& [name, tensor] : AllTensors(parameters, optimizer)) {
    kept.push_back(tensor.detach().contiguous());
    views.push_back({name, TypeOf(tensor), tensor.sizes().vec(), kept.back().const_data_ptr()});
  }
  const std::map<std::string, std::string> texts = {
      {"program", kProgram}, {"run", Lines(settings)}, {"progress", ProgressText(progress)}};
  return Naming(path, data::WriteTensorArchive(path, views, texts));
}

absl::Status LoadCheckpoint(const std::string& path, const RunSettings& settings, Progress& progress,
                            const NamedTensors& parameters, Optimizer& optimizer) {
  absl::StatusOr<data::TensorArchive> archive = data::TensorArchive::Open(path);
  if (!archive.ok()) return Naming(path, archive.status());
  PLAIT_RETURN_IF_ERROR(Naming(path, CheckArchive(*archive, settings, progress)));
  for (const auto& [name, tensor] : AllTensors(parameters, optimizer)) {
    at::Tensor target = tensor.detach();  // shares the memory
    PLAIT_RETURN_IF_ERROR(Naming(
        path, archive->ReadInto(name, TypeOf(target), target.sizes().vec(), target.mutable_data_ptr())));
  }
  optimizer.set_steps(progress.optimizer_steps);
  return absl::OkStatus();
}

}  // namespace plait::gru_training
