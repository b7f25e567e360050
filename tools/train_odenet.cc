// Trains residual networks as discretised differential equations: tools/odenet_training/README.md.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tools/odenet_training/nested.h"
#include "tools/odenet_training/problem.h"
#include "tools/odenet_training/settings.h"
#include "tools/odenet_training/study.h"
#include "tools/training/model_file.h"
#include "tools/training/program.h"

namespace plait::odenet_training {
namespace {

std::vector<std::pair<std::string, std::string>> ConfigBlock(const OdeNetSettings& s,
                                                             const training::Run& run) {
  const std::int64_t all = s.GlobalBatch(run.data.size());
  return {{"problem", s.problem},
          {"layers", absl::StrCat(s.layers)},
          {"channels", absl::StrCat(s.channels)},
          {"final_time", absl::StrCat(s.final_time)},
          {"batch_size", absl::StrCat(s.SamplesPerRank(run.data.size()), " a rank, ", all, " in all")},
          {"epochs", absl::StrCat(s.epochs)},
          {"lr", absl::StrCat(s.lr)},
          {"tikhonov", absl::StrCat(s.tikhonov, " in size, ", s.tikhonov_time, " in time")},
          {"nested",
           s.nested || s.study ? absl::StrCat(s.nested_levels, " levels, factor ", s.nested_cfactor) : "no"},
          {"strategy", s.strategy},
          {"dtype", s.dtype},
          {"device", run.environment.device.kind},
          {"world_size", absl::StrCat(run.world.size())},
          {"seed", absl::StrCat(s.seed)}};
}

// One level of the solver's grid is serial propagation.
absl::Status CompareWithSerial(const OdeNetSettings& settings, const Point& parallel, training::Run& run,
                               const Problem& problem) {
  OdeNetSettings serial = WithoutFiles(settings);
  serial.lp.PropagateSerially();
  training::Run serial_run = WithSettings(run, serial);
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Point> story,
                         TrainLevels(serial, serial_run, problem, /*prints=*/false));
  run.stopped = serial_run.stopped;
  if (run.stopped) return absl::OkStatus();
  const Point& beside = story.back();
  run.log.Info(
      absl::StrFormat("layer-parallel: val_loss=%.6f val_acc=%.2f", parallel.val_loss, parallel.val_acc));
  run.log.Info(
      absl::StrFormat("serial:         val_loss=%.6f val_acc=%.2f", beside.val_loss, beside.val_acc));
  return absl::OkStatus();
}

absl::Status Train(const OdeNetSettings& settings, training::Run& run) {
  PLAIT_ASSIGN_OR_RETURN(const Problem problem, OpenProblem(settings, run.world));
  run.log.Info(problem.description);
  PLAIT_RETURN_IF_ERROR(training::ProbeModelFolder(settings.save_model, run));
  if (settings.study) return RunStudy(settings, run, problem);
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Point> story,
                         TrainLevels(settings, run, problem, /*prints=*/true));
  if (!settings.compare || run.stopped || settings.dry_run || settings.eval_only) return absl::OkStatus();
  if (story.empty()) {
    return absl::FailedPreconditionError(
        "--compare: the checkpoint has no validation to compare with; expected more --epochs");
  }
  return CompareWithSerial(settings, story.back(), run, problem);
}

}  // namespace
}  // namespace plait::odenet_training

int main(int argc, char** argv) {
  using namespace plait;
  odenet_training::OdeNetSettings settings;
  return training::RunProgram(
      argc, argv,
      {.name = "train_odenet",
       .summary = "Trains residual networks as discretised differential equations, of any depth, on Peaks, "
                  "Indian Pines, "
                  "MNIST or Fashion-MNIST; with nested iteration from coarse to fine networks.",
       .examples = {"train_odenet --problem=peaks", "train_odenet --problem=peaks --nested --layers=64",
                    "train_odenet --problem=indian_pines --data=indian-pines --form=conv",
                    "train_odenet --problem=mnist --data=mnist --layers=32 --nproc=2 --compare",
                    "train_odenet --study --nproc=1"},
       .settings = settings,
       .run = [&](training::Run& run) { return odenet_training::Train(settings, run); },
       .config_block =
           [&](const training::Run& run) { return odenet_training::ConfigBlock(settings, run); }});
}
