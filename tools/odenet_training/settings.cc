#include "tools/odenet_training/settings.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace plait::odenet_training {
namespace {

using training::AtLeast;
using training::Between;
using training::OneOf;
using training::OnResume;

constexpr double kLargest = 1e30;

// What a problem has instead of the defaults, which are those of peaks.
const std::map<std::string, std::vector<std::pair<std::string, std::string>>>& Problems() {
  static const std::map<std::string, std::vector<std::pair<std::string, std::string>>> problems = {
      {"peaks", {}},
      {"indian_pines", {{"channels", "32"}, {"layers", "16"}, {"final_time", "1"}, {"lr", "0.003"}}},
      {"mnist",
       {{"form", "conv"},
        {"channels", "4"},
        {"layers", "8"},
        {"final_time", "1"},
        {"hidden", "32"},
        {"activation", "relu"},
        {"epochs", "3"},
        {"lr", "0.003"}}},
      {"fashion",
       {{"form", "conv"},
        {"channels", "4"},
        {"layers", "8"},
        {"final_time", "1"},
        {"hidden", "32"},
        {"activation", "relu"},
        {"epochs", "3"},
        {"lr", "0.003"}}}};
  return problems;
}

std::vector<std::string> ProblemNames() {
  std::vector<std::string> names;
  for (const auto& [name, defaults] : Problems()) names.push_back(name);
  return names;
}

bool HasImages(const std::string& problem) { return problem == "mnist" || problem == "fashion"; }

odenet::Activation ParsedActivation(const std::string& text) {
  if (text == "tanh") return odenet::Activation::kTanh;
  return text == "relu" ? odenet::Activation::kRelu : odenet::Activation::kSmoothRelu;
}

odenet::TimeWeights ParsedTimeWeights(const std::string& text) {
  if (text == "per-layer") return odenet::TimeWeights::kPerLayer;
  return text == "piecewise" ? odenet::TimeWeights::kPiecewise : odenet::TimeWeights::kSpline;
}

}  // namespace

void OdeNetSettings::Bind(training::SettingsTable& table) {
  // One iteration less each way costs ten points of accuracy after 8 epochs of peaks.
  lp.forward_iterations = 3;
  lp.iterations = 2;
  table.Group("Problem");
  table.Add("problem", &problem, "peaks, indian_pines, mnist or fashion", OnResume::kPreset);
  table.Add(
      "data", &data,
      "indian_pines: directory of Indian_pines_gt.mat and Indian_pines_corrected.mat (without the latter, a "
      "synthetic cube); mnist, fashion: directory of IDX files (default: Debian's dataset-fashion-mnist, "
      "else a "
      "synthetic stand-in); peaks is generated");
  table.Add("samples", &samples, "peaks: training points", OnResume::kSame);
  table.Add("validation_samples", &validation_samples, "peaks: validation points", OnResume::kSame);
  table.Add("train_fraction", &train_fraction, "indian_pines: share of each class to train on",
            OnResume::kSame);
  table.Add("max_samples", &max_samples, "mnist, fashion: train and validate on the first N images; 0: all");
  BindNetwork(table);
  table.Group("Training");
  BindBatch(table, "samples");
  table.Add("test_batch_size", &test_batch_size, "validation batch size of a data-parallel rank");
  table.Add("epochs", &epochs, "number of epochs (mnist, fashion: 3)", OnResume::kAdopt);
  table.Add("eval_interval", &eval_interval, "validate every N epochs", OnResume::kAdopt);
  table.Add("lr", &lr, "learning rate of Adam in the first epoch (indian_pines, mnist, fashion: 0.003)",
            OnResume::kAdopt);
  table.Add("gamma", &gamma, "factor by which the learning rate is multiplied after each epoch",
            OnResume::kAdopt);
  table.Add("tikhonov", &tikhonov, "regularisation in size: alpha / 2 sum dt |theta|^2 over the layers",
            OnResume::kSame);
  table.Add("tikhonov_time", &tikhonov_time,
            "regularisation in time: beta / 2 sum |theta_{i+1} - theta_i|^2 / dt", OnResume::kSame);
  table.Group("Nested iteration");
  table.Add("nested", &nested,
            "trains coarse networks first and interpolates their weights to the next finer one",
            OnResume::kSame);
  table.Add("nested_levels", &nested_levels, "networks, the finest included", OnResume::kSame);
  table.Add("nested_cfactor", &nested_cfactor, "layers of a network over those of the next coarser one",
            OnResume::kSame);
  table.Add("nested_epochs", &nested_epochs, "epochs of each coarse network; 0: --epochs", OnResume::kSame);
  table.Add("nested_interpolation", &nested_interpolation,
            "interpolation of weights in time: constant or linear", OnResume::kSame);
  table.Add("compare", &compare,
            "also trains with serial propagation through the layers, from the same seed, and prints both "
            "accuracies");
  table.Add(
      "study", &study,
      "trains nested and, with the same work, not nested, for 5 and 8 channels, --tikhonov 1e-5 and 1e-7, "
      "--initial-weights 0 and 1e-6, and prints a table of validation accuracies");
  table.Add("study_seeds", &study_seeds, "runs of each kind in the study");
  BindParallel(table);
  BindFiles(table, "epochs");
  table.Add("save_model", &save_model, "directory to write model.safetensors to, at the end");
}

void OdeNetSettings::BindNetwork(training::SettingsTable& table) {
  table.Group("Network");
  table.Add("layers", &layers, "residual layers (indian_pines: 16; mnist, fashion: 8)", OnResume::kSame);
  table.Add("channels", &channels, "width of the network (indian_pines: 32; mnist, fashion: 4)",
            OnResume::kSame);
  table.Add("final_time", &final_time,
            "T: a layer is u + T/layers F(u) (ODENet); 0: u + F(u) (ResNet) (other problems than peaks: 1)",
            OnResume::kSame);
  table.Add("form", &form, "dense, or conv: convolutions over the bands or the image (mnist, fashion: conv)",
            OnResume::kSame);
  table.Add("activation", &activation, "tanh, relu or smooth-relu (mnist, fashion: relu)", OnResume::kSame);
  table.Add("time_weights", &time_weights,
            "per-layer; piecewise: constant over layers / controls layers; spline: linear between --controls "
            "points",
            OnResume::kSame);
  table.Add("controls", &controls, "control points of piecewise and spline weights", OnResume::kSame);
  table.Add("initial_weights", &initial_weights,
            "standard deviation of the layers' initial weights; negative: as torch.nn.Linear's",
            OnResume::kSame);
  table.Add("hidden", &hidden, "hidden units of the closing layer (mnist, fashion: 32)", OnResume::kSame);
}

absl::Status OdeNetSettings::ChooseDefaults(training::SettingsTable& table) {
  PLAIT_RETURN_IF_ERROR(OneOf("problem", problem, ProblemNames()));
  for (const auto& [name, value] : Problems().at(problem))
    PLAIT_RETURN_IF_ERROR(table.SetDefault(name, value));
  return absl::OkStatus();
}

absl::Status OdeNetSettings::CheckGiven(const training::SettingsTable& table) const {
  if (!nested && !study) PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("nested_", "--nested or --study"));
  if (!study) PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("study_", "--study"));
  for (const char* name : {"channels", "tikhonov", "initial_weights", "eval_interval", "nested"}) {
    if (!study || !table.Given(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}}), ": not with --study, which sets it"));
  }
  for (const char* name : {"outputs", "history", "trace", "plots"}) {
    if (!study || !table.Given(name) || (name == absl::string_view("plots") && !plots)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": not with --study, whose runs write no files"));
  }
  if (problem != "peaks") {
    for (const char* name : {"samples", "validation_samples"})
      PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven(name, "--problem=peaks"));
  } else {
    PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("data", "another --problem than peaks, which is generated"));
  }
  if (problem != "indian_pines") {
    PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("train_fraction", "--problem=indian_pines"));
  }
  if (!HasImages(problem)) {
    PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("max_samples", "--problem=mnist or fashion"));
  }
  if (time_weights == "per-layer") {
    PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("controls", "--time-weights=piecewise or spline"));
  }
  return Settings::CheckGiven(table);
}

absl::Status OdeNetSettings::Check(const std::vector<comm::MeshAxis>& axes) const {
  PLAIT_RETURN_IF_ERROR(CheckNested());
  PLAIT_RETURN_IF_ERROR(CheckNetwork());
  PLAIT_RETURN_IF_ERROR(AtLeast("test-batch-size", test_batch_size, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("epochs", epochs, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("eval-interval", eval_interval, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("max-samples", max_samples, 0));
  PLAIT_RETURN_IF_ERROR(Between("train-fraction", train_fraction, 0, 1));
  PLAIT_RETURN_IF_ERROR(Between("lr", lr, 0, kLargest));
  PLAIT_RETURN_IF_ERROR(Between("gamma", gamma, 0, 1));
  PLAIT_RETURN_IF_ERROR(Between("tikhonov", tikhonov, 0, kLargest));
  PLAIT_RETURN_IF_ERROR(Between("tikhonov-time", tikhonov_time, 0, kLargest));
  PLAIT_RETURN_IF_ERROR(CheckSolver(axes));
  return CheckShared(axes);
}

absl::Status OdeNetSettings::CheckSolver(const std::vector<comm::MeshAxis>& axes) const {
  const bool solves = lp.Solves(training::RanksAlong(axes, "lp"));
  if (compare && !solves) {
    return absl::InvalidArgumentError(
        "--compare: expected --force-lp, or more than one rank along lp (--nproc=N)");
  }
  if (compare && eval_only) return absl::InvalidArgumentError("--compare: not with --eval-only");
  return CheckLayers(axes, "layers", layers);
}

absl::Status OdeNetSettings::CheckNetwork() const {
  PLAIT_RETURN_IF_ERROR(AtLeast("layers", static_cast<double>(layers), 1));
  if (layers > training::kMostBlocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("--layers=", layers, ": expected at most ", training::kMostBlocks));
  }
  PLAIT_RETURN_IF_ERROR(AtLeast("channels", static_cast<double>(channels), 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("hidden", static_cast<double>(hidden), 0));
  PLAIT_RETURN_IF_ERROR(Between("final-time", final_time, 0, kLargest));
  PLAIT_RETURN_IF_ERROR(Between("initial-weights", initial_weights, -kLargest, kLargest));
  PLAIT_RETURN_IF_ERROR(OneOf("form", form, {"dense", "conv"}));
  if (HasImages(problem) && form == "dense") {
    return absl::InvalidArgumentError(absl::StrCat("--form=dense: expected conv for --problem=", problem));
  }
  if (problem == "peaks" && form == "conv")
    return absl::InvalidArgumentError("--form=conv: expected dense for --problem=peaks");
  PLAIT_RETURN_IF_ERROR(OneOf("activation", activation, {"tanh", "relu", "smooth-relu"}));
  PLAIT_RETURN_IF_ERROR(OneOf("time-weights", time_weights, {"per-layer", "piecewise", "spline"}));
  if (time_weights == "spline") return AtLeast("controls", static_cast<double>(controls), 2);
  if (time_weights == "per-layer") return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(AtLeast("controls", static_cast<double>(controls), 1));
  OdeNetSettings of_study = *this;
  of_study.nested = nested || study;
  for (const std::int64_t of_level : of_study.Levels()) {
    if (of_level % controls != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--controls=", controls, ": expected a divisor of ", of_level, " layers"));
    }
  }
  return absl::OkStatus();
}

absl::Status OdeNetSettings::CheckNested() const {
  PLAIT_RETURN_IF_ERROR(AtLeast("study-seeds", study_seeds, 1));
  if (study && problem != "peaks") return absl::InvalidArgumentError("--study: expected --problem=peaks");
  if (study && !(checkpoint_dir.empty() && resume.empty())) {
    return absl::InvalidArgumentError("--study: expected neither --checkpoint-dir nor --resume");
  }
  if (study && !save_model.empty()) return absl::InvalidArgumentError("--save-model: not with --study");
  if (study && dry_run) return absl::InvalidArgumentError("--dry-run: not with --study");
  if (study && compare) return absl::InvalidArgumentError("--compare: not with --study");
  if (!nested && !study) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(AtLeast("nested-levels", nested_levels, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("nested-cfactor", nested_cfactor, 2));
  PLAIT_RETURN_IF_ERROR(AtLeast("nested-epochs", nested_epochs, 0));
  PLAIT_RETURN_IF_ERROR(OneOf("nested-interpolation", nested_interpolation, {"constant", "linear"}));
  std::int64_t divisor = 1;
  for (int level = 1; level < nested_levels && divisor <= layers; ++level) divisor *= nested_cfactor;
  if (layers % divisor == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--layers=", layers, ": expected a multiple of ", divisor,
                                                 ", for --nested-levels=", nested_levels,
                                                 " and --nested-cfactor=", nested_cfactor));
}

odenet::OdeNetOptions OdeNetSettings::Network(const std::vector<std::int64_t>& sample, std::int64_t classes,
                                              std::int64_t layers_of_level) const {
  using odenet::Form;
  const Form conv = sample.size() == 2 ? Form::kConv2d : Form::kConv1d;
  return {.form = form == "dense" ? Form::kDense : conv,
          .sample = sample,
          .channels = channels,
          .layers = layers_of_level,
          .final_time = final_time,
          .activation = ParsedActivation(activation),
          .time_weights = ParsedTimeWeights(time_weights),
          .controls = controls,
          .hidden = hidden,
          .classes = classes,
          .initial_weights = initial_weights,
          .time_tikhonov = tikhonov_time};
}

models::ModelSizes OdeNetSettings::Sizes() const {
  const std::int64_t blocks = time_weights == "per-layer" ? Levels().back() : controls;
  return {.layers = blocks, .shapes = {{blocks, channels, channels}, {hidden}}};
}

std::vector<std::int64_t> OdeNetSettings::Levels() const {
  std::vector<std::int64_t> levels = {layers};
  for (int level = 1; nested && level < nested_levels; ++level)
    levels.push_back(levels.back() / nested_cfactor);
  return levels;
}

}  // namespace plait::odenet_training
