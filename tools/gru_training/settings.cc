#include "tools/gru_training/settings.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::gru_training {
namespace {

using training::AtLeast;
using training::OnResume;

absl::Status Invalid(const std::string& line) { return absl::InvalidArgumentError(line); }

absl::Status CheckNumbers(const GruSettings& s) {
  PLAIT_RETURN_IF_ERROR(AtLeast("log-interval", s.log_interval, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("ensemble-size", s.ensemble_size, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("sequence-length", s.sequence_length, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("hidden-size", s.hidden_size, 1));
  PLAIT_RETURN_IF_ERROR(training::Between("num-layers", s.num_layers, 1, training::kMostBlocks));
  PLAIT_RETURN_IF_ERROR(training::Between("batch-size", static_cast<double>(s.global_batch_size), 1, 1e9));
  PLAIT_RETURN_IF_ERROR(AtLeast("epochs", s.epochs, 1));
  PLAIT_RETURN_IF_ERROR(training::Positive("tf", s.tf));
  PLAIT_RETURN_IF_ERROR(training::Positive("lr", s.lr));
  if (s.percent_data > 0 && s.percent_data <= 1) return absl::OkStatus();
  return Invalid(
      absl::StrCat("--percent-data=", s.percent_data, ": a share of the data, above 0 and at most 1"));
}

absl::Status CheckSolver(const GruSettings& s, int ranks) {
  PLAIT_RETURN_IF_ERROR(training::OneOf("lp-coarse-step", s.lp_coarse_step, {"frozen", "one"}));
  for (const int hold : s.lp_coarse_hold) PLAIT_RETURN_IF_ERROR(AtLeast("lp-coarse-hold", hold, 0));
  // A serial run has no solver, whose flags then have no effect.
  return s.lp.Solves(ranks) ? s.lp.Check(s.sequence_length, "sequence-length") : absl::OkStatus();
}

int LayerParallelRanks(const std::vector<comm::MeshAxis>& axes) { return axes.back().size; }

}  // namespace

GruSettings::GruSettings() {
  seed = 783214419;
  global_batch_size = 100;
  plots = false;
}

void GruSettings::Bind(training::SettingsTable& table) {
  table.Group("Run");
  table.Add("seed", &seed, "random seed of the initial parameters and the order of the samples",
            OnResume::kSame);
  table.Add("log_interval", &log_interval, "log every N batches");
  table.Add("percent_data", &percent_data, "share of the data to use, above 0 and at most 1",
            OnResume::kSame);
  table.Add("ensemble_size", &ensemble_size, "number of models to train, with seeds derived from --seed");
  table.Group("Network");
  table.Add("sequence_length", &sequence_length, "steps of a sequence; the first ones are used",
            OnResume::kSame);
  table.Add("tf", &tf, "final time: a step is tf / sequence-length long", OnResume::kSame);
  table.Add("hidden_size", &hidden_size, "units per layer", OnResume::kSame);
  table.Add("num_layers", &num_layers, "stacked layers", OnResume::kSame);
  derives_cell_ = gru.empty();
  table.Add("gru", &gru,
            gru.empty()
                ? "implicit or classic cell; by default implicit, and classic where one rank trains serially"
                : "implicit or classic cell",
            OnResume::kSame);
  table.Add(
      "implicit_serial", &implicit_serial,
      "the implicit cell in the serial network: that of one rank without --force-lp, and that of serial "
      "tests",
      OnResume::kAdopt);
  table.Group("Training");
  table.Add("batch_size", &global_batch_size, "samples of a micro-batch, over all ranks", OnResume::kSame);
  table.Add("gradient_accumulation_steps", &gradient_accumulation_steps, "micro-batches of a step",
            OnResume::kSame);
  table.Add("epochs", &epochs, "number of epochs", OnResume::kAdopt);
  table.Add("lr", &lr, "learning rate", OnResume::kAdopt);
  table.Add("use_sgd", &use_sgd, "plain gradient descent instead of Adam", OnResume::kSame);
  table.Group("Coarse steps and residuals of the solver");
  table.Add("lp_print", &lp_print,
            "1: with each progress line, the residuals of the latest solves by iteration");
  table.Add("lp_braid_print", &lp_braid_print, "1: these residuals after every batch");
  table.Add("lp_coarse_step", &lp_coarse_step,
            "what a coarse step is: frozen, the fine step repeated with the gates of its beginning, or one "
            "long step",
            OnResume::kAdopt);
  table.Add("lp_coarse_hold", &lp_coarse_hold,
            "per coarse level: after how many sequence items a coarse step recomputes its gates; longer "
            "steps are split; 0: never split",
            OnResume::kAdopt);
  BindParallel(table);
  BindFiles(table, "batches and tests");
  BindData(table);
}

void GruSettings::BindData(training::SettingsTable& table) {
  table.Add(
      "data_dir", &data_dir,
      "directory in the UCI HAR text layout, or a prepared .h5 file; by default the recordings that set-up "
      "has fetched, else a synthetic stand-in");
}

std::string GruSettings::DerivedCell(const std::vector<comm::MeshAxis>& axes) const {
  return lp.Solves(LayerParallelRanks(axes)) || implicit_serial ? "implicit" : "classic";
}

void GruSettings::Complete(const std::vector<comm::MeshAxis>& axes) {
  if (gru.empty()) gru = DerivedCell(axes);
}

std::vector<std::string> GruSettings::DerivedFlags(const std::vector<comm::MeshAxis>& axes) const {
  if (!derives_cell_ || gru != DerivedCell(axes)) return {};
  return {"gru"};
}

absl::Status GruSettings::Check(const std::vector<comm::MeshAxis>& axes) const {
  PLAIT_RETURN_IF_ERROR(CheckNoDryRun());
  PLAIT_RETURN_IF_ERROR(CheckNumbers(*this));
  PLAIT_RETURN_IF_ERROR(training::OneOf("gru", gru, {"implicit", "classic"}));
  PLAIT_RETURN_IF_ERROR(CheckSolver(*this, LayerParallelRanks(axes)));
  if (const int ranks = training::DataRanks(axes); global_batch_size < ranks) {
    return Invalid(absl::StrCat("--batch-size=", global_batch_size, ": ", ranks,
                                " data-parallel ranks; expected at least one sample for each"));
  }
  if (!lp.Solves(LayerParallelRanks(axes)) && implicit_serial && gru == "classic") {
    return Invalid(
        "--gru=classic and --implicit-serial contradict each other where one rank trains serially");
  }
  if (ensemble_size > 1 && !(checkpoint_dir + resume + history + outputs).empty()) {
    return Invalid(
        "--ensemble-size: checkpoints and histories are of a single run; leave out --checkpoint-dir, "
        "--resume, --outputs and --history");
  }
  return CheckShared(axes);
}

absl::Status GruSettings::CheckResume(const std::string& folder) const {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const std::string file = fs::is_regular_file(folder, ignored) ? folder : folder + "/last.h5";
  if (!fs::exists(file, ignored)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      file,
      ": a checkpoint of train_gru in the format of one file, which this version does not read; finish "
      "that run with Plait at revision b40ebd1 (git checkout b40ebd1; bazel run -c opt "
      "//tools:train_gru -- --resume=",
      folder, "), or begin again in another directory"));
}

gru::GruStepOptions GruSettings::StepOptions() const {
  gru::GruStepOptions options;
  const bool frozen = lp_coarse_step == "frozen";
  options.coarse_step = frozen ? gru::CoarseStep::kFrozenGates : gru::CoarseStep::kOneStep;
  options.coarse_hold = lp_coarse_hold;
  return options;
}

}  // namespace plait::gru_training
