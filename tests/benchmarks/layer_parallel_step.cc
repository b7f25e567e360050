// Seconds per batch of the layer-parallel GRU, on as many ranks as it is started on:
//
//   bazel run //tests/benchmarks:layer_parallel_step -- --nproc=2 --setting=published --batches=20
//   --windows=2947
//
//   serial_step ranks=1 steps=128 batch=100 hidden=100 median=0.0811 min=... max=...
//   lp_step ranks=2 steps=128 batch=100 hidden=100 setting=levels=3/... median=... min=... max=...
//   forward=... head=...
//       backward=... overhead=0.021 overhead_without_messages=0.014 messages=... evaluations=... (one line)
//   lp_costs ranks=2 steps=128 setting=... fine_step=0.00021 ... inputs=... head=... solver=... sum=...
//   lp_inference ranks=2 steps=128 setting=... windows=2947 seconds=...
//   messages ranks=2 latency=... per_byte=... contention=... hand_over=...
//
// Parts are means over the ranks' batches; the median is of the slowest rank's time. `overhead` is the share
// of forward and backward outside Phi, its adjoint and the weight gradients. One thread per rank. Without
// --setting, train_gru's own flags choose the solver. tests/benchmarks/scaling reads these lines.
#include <ATen/Parallel.h>

#include <cstdio>
#include <vector>

#include "absl/flags/flag.h"
#include "base/flags.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/relaunch.h"
#include "comm/session_main.h"
#include "mgrit/scaling/message_costs.h"
#include "tests/benchmarks/spread.h"
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

// Means over ranks and batches, but for the time that a batch takes: that of the slowest rank.
struct Measured {
  std::vector<double> totals;
  BatchSeconds mean;
};

Measured Measure(StepRun& run, const comm::Communicator& world) {
  for (int i = 0; i < absl::GetFlag(FLAGS_warmup); ++i) run.RunBatch();
  run.solver().ResetWorkTimes();
  Measured measured;
  const int batches = absl::GetFlag(FLAGS_batches);
  std::vector<double> sums(7, 0.0);
  for (int i = 0; i < batches; ++i) {
    const BatchSeconds s = run.RunBatch();
    double total = s.total();
    world.AllReduce(comm::BufferOf(absl::MakeSpan(&total, 1)), comm::ReduceOp::kMax);
    measured.totals.push_back(total);
    const double parts[] = {s.forward,        s.head, s.backward, s.forward_solve,
                            s.backward_solve, s.work, s.messages};
    for (std::size_t part = 0; part < sums.size(); ++part) sums[part] += parts[part] / batches / world.size();
  }
  world.AllReduce(comm::BufferOf(absl::MakeSpan(sums)));
  measured.mean = {sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6]};
  return measured;
}

void PrintWhere(const char* word, const StepShape& shape, int ranks, const std::string& setting) {
  std::printf("%s ranks=%d steps=%lld batch=%lld hidden=%lld setting=%s", word, ranks,
              static_cast<long long>(shape.steps), static_cast<long long>(shape.batch),
              static_cast<long long>(shape.cell.hidden), setting.c_str());
}

void PrintSpread(const Spread& spread) {
  std::printf(" median=%.6f min=%.6f max=%.6f", spread.median, spread.min, spread.max);
}

// Seconds of each kind of work, by one piece of it; then what is not in them: by item of the sequence
// (inputs), by batch (head), by evaluation (solver), by step whose gradient is taken (sum of gradients).
void PrintCosts(StepRun& run, const BatchSeconds& mean, const StepShape& shape, const Setting& setting,
                double evaluations, const comm::Communicator& world) {
  const mgrit::WorkTimes times = run.solver().work_times();
  mgrit::WorkSeconds seconds = times.seconds;
  std::vector<double> counts(times.counts.values.begin(), times.counts.values.end());
  world.AllReduce(comm::BufferOf(absl::MakeSpan(seconds.values.data(), mgrit::kWorkKinds)));
  world.AllReduce(comm::BufferOf(absl::MakeSpan(counts)));
  if (world.rank() != 0) return;
  PrintWhere("lp_costs", shape, world.size(), TextOf(setting));
  for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) {
    if (counts[kind] > 0)
      std::printf(" %s=%.9f", mgrit::kWorkNames[kind], seconds.values[kind] / counts[kind]);
  }
  const std::size_t gradient = static_cast<std::size_t>(mgrit::WorkKind::kGradient);
  const double batches = absl::GetFlag(FLAGS_batches);
  const double gradients = seconds.values[gradient] / batches / world.size();
  const double steps = static_cast<double>(shape.steps);
  const double solver = mean.forward_solve + mean.backward_solve - (mean.work - gradients) - mean.messages;
  const double state_bytes = 4.0 * static_cast<double>(shape.cell.layers * shape.batch * shape.cell.hidden);
  std::printf(" state_bytes=%.0f gradient_bytes=%.0f", state_bytes, 4.0 * run.GradientCount());
  std::printf(
      " inputs=%.9f head=%.9f solver=%.9f sum=%.9f\n", (mean.forward - mean.forward_solve) / steps, mean.head,
      solver * world.size() / evaluations,
      (mean.backward - mean.backward_solve - gradients) * world.size() / (counts[gradient] / batches));
}

void MeasureSerial(StepRun& run, const StepShape& shape) {
  std::vector<double> seconds;
  for (int i = 0; i < absl::GetFlag(FLAGS_warmup); ++i) run.RunSerialBatch();
  for (int i = 0; i < absl::GetFlag(FLAGS_batches); ++i) seconds.push_back(run.RunSerialBatch());
  PrintWhere("serial_step", shape, 1, "serial");
  PrintSpread(SpreadOf(seconds));
  std::printf("\n");
}

void MeasureInference(StepRun& run, const StepShape& shape, const Setting& setting, int windows,
                      const comm::Communicator& world) {
  run.RunInference(shape.batch);
  double seconds = run.RunInference(windows);
  world.AllReduce(comm::BufferOf(absl::MakeSpan(&seconds, 1)), comm::ReduceOp::kMax);
  if (world.rank() != 0) return;
  PrintWhere("lp_inference", shape, world.size(), TextOf(setting));
  std::printf(" windows=%d seconds=%.6f\n", windows, seconds);
}

absl::Status Run(const gru_training::GruSettings& config, const Setting& setting, comm::Session& session) {
  at::set_num_threads(1);
  const comm::Communicator& world = session.world();
  const StepShape shape = ShapeOf(config);
  StepRun run(shape, setting, world);
  session.EnterSteps();
  const bool alone = world.size() == 1;
  if (alone && absl::GetFlag(FLAGS_serial)) MeasureSerial(run, shape);
  const Measured measured = Measure(run, world);
  const BatchSeconds& mean = measured.mean;
  const double forward = run.ForwardEvaluations(), backward = run.BackwardEvaluations();
  if (world.rank() == 0) {
    PrintWhere("lp_step", shape, world.size(), TextOf(setting));
    PrintSpread(SpreadOf(measured.totals));
    const double solves = mean.forward + mean.backward;
    std::printf(
        " forward=%.6f head=%.6f backward=%.6f overhead=%.4f overhead_without_messages=%.4f messages=%.6f "
        "forward_evaluations=%.0f backward_evaluations=%.0f\n",
        mean.forward, mean.head, mean.backward, 1 - mean.work / solves,
        1 - (mean.work + mean.messages) / solves, mean.messages, forward, backward);
  }
  PrintCosts(run, mean, shape, setting, forward + backward, world);
  const int windows = absl::GetFlag(FLAGS_windows);
  if (windows > 0) MeasureInference(run, shape, setting, windows, world);
  if (!alone && absl::GetFlag(FLAGS_messages)) {
    const mgrit::scaling::MessageCosts costs =
        mgrit::scaling::MeasureMessages(world, [&] { run.RunSerialBatch(); });
    if (world.rank() == 0) {
      std::printf("messages ranks=%d latency=%.9f per_byte=%.15f contention=%.4f hand_over=%.9f\n",
                  world.size(), costs.latency_seconds, costs.byte_seconds, costs.contention,
                  costs.hand_over_seconds);
    }
  }
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
    status = comm::RelaunchOnRanks(config.nproc, argv);  // comes back only if it fails
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
