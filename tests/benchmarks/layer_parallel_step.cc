// Seconds per batch of the layer-parallel GRU, on as many ranks as it is started on:
//
//   bazel run //tests/benchmarks:layer_parallel_step -- --nproc=2 --setting=published --batches=20
//   --windows=2947
//
// The lines are those of step_lines.h, and with --windows
//
//   lp_inference ranks=2 steps=128 ... setting=... windows=2947 seconds=...
//
// One thread per rank. Without --setting, train_gru's own flags choose the solver. tests/benchmarks/scaling reads these
// lines.
#include <ATen/Parallel.h>

#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "base/flags.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/run_on_ranks.h"
#include "comm/session_main.h"
#include "tests/benchmarks/step_lines.h"
#include "tests/benchmarks/step_run.h"
#include "tools/gru_training/settings.h"

ABSL_FLAG(std::string, setting, "",
          "published, published-cycle, default, or a setting's text; without it, the solver flags choose");
ABSL_FLAG(int, batches, 20, "measured batches");
ABSL_FLAG(int, warmup, 3, "batches before the measured ones");
ABSL_FLAG(int, windows, 0, "sequences of the inference that is timed; 0: none");
ABSL_FLAG(bool, serial, true, "on one rank: the same network step after step as well");
ABSL_FLAG(bool, messages, true, "on several ranks: what messages cost, and how ranks slow each other down");

namespace plait::benchmarks {
namespace {

base::ToolUsage Usage(training::SettingsTable& table) {
  base::ToolUsage usage = table.Usage(
      "layer_parallel_step", "Times batches of the layer-parallel GRU: forward, head and loss, backward.",
      {"layer_parallel_step --nproc=2 --setting=published --windows=2947",
       "layer_parallel_step --nproc=4 --lp-levels 2 --lp-cfactor 8 --lp-fwd-iters 2 --lp-iters 1"});
  usage.groups.insert(usage.groups.begin(),
                      {"Measurement", {"setting", "batches", "warmup", "windows", "serial", "messages"}});
  return usage;
}

absl::StatusOr<Setting> ChosenSetting(const gru_training::GruSettings& config) {
  const std::string text = absl::GetFlag(FLAGS_setting);
  Setting setting = {config.lp.Options(), config.StepOptions()};
  if (!text.empty()) {
    PLAIT_ASSIGN_OR_RETURN(setting, ParseSetting(text));
  }
  PLAIT_RETURN_IF_ERROR(mgrit::LayerParallel::Check(setting.solver, config.sequence_length));
  return setting;
}

StepShape ShapeOf(const gru_training::GruSettings& config) {
  StepShape shape;
  shape.cell = {.input = 9, .hidden = config.hidden_size, .layers = config.num_layers};
  shape.cell.kind = config.gru == "classic" ? gru::GruKind::kClassic : gru::GruKind::kImplicit;
  if (config.dtype == "bfloat16") shape.cell.products = gru::GruProducts::kBFloat16;
  shape.batch = config.global_batch_size;
  shape.steps = config.sequence_length;
  shape.final_time = config.tf * static_cast<double>(shape.steps) / 128.0;  // the same step at any length
  return shape;
}

void MeasureInference(StepRun& run, const StepShape& shape, const Setting& setting, int windows,
                      const comm::Communicator& world) {
  run.RunInference(shape.batch);
  double seconds = run.RunInference(windows);
  world.AllReduce(comm::BufferOf(absl::MakeSpan(&seconds, 1)), comm::ReduceOp::kMax);
  if (world.rank() != 0) return;
  std::printf("%s windows=%d seconds=%.6f\n", LineHead("lp_inference", run, TextOf(setting)).c_str(), windows,
              seconds);
}

absl::Status Run(const gru_training::GruSettings& config, const Setting& setting, comm::Session& session) {
  at::set_num_threads(1);
  const comm::Communicator& world = session.world();
  const StepShape shape = ShapeOf(config);
  StepRun run(shape, setting, world);
  session.EnterSteps();
  MeasureSteps(run, TextOf(setting),
               {.batches = absl::GetFlag(FLAGS_batches),
                .warmup = absl::GetFlag(FLAGS_warmup),
                .serial = absl::GetFlag(FLAGS_serial),
                .messages = absl::GetFlag(FLAGS_messages)});
  const int windows = absl::GetFlag(FLAGS_windows);
  if (windows > 0) MeasureInference(run, shape, setting, windows, world);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const comm::Launcher launcher = comm::DetectLauncher();
  gru_training::GruSettings config;
  training::SettingsTable table;
  config.Bind(table);
  base::ParseFlagsOrExit(argc, argv, Usage(table), launcher.rank);
  const absl::StatusOr<Setting> setting = ChosenSetting(config);
  absl::Status status = setting.status();
  if (status.ok() && config.nproc > 1 && launcher.kind == comm::LauncherKind::kNone) {
    return comm::RunOnRanks(config.nproc, argv);
  }
  if (status.ok()) {
    return comm::RunMain(argc, argv, {},
                         [&](comm::Session& session) { return Run(config, *setting, session); });
  }
  if (launcher.rank == 0)
    std::fprintf(stderr, "layer_parallel_step: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) { return plait::benchmarks::Main(argc, argv); }
