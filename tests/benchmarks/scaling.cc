// The model of scaling against measured runs, and what it says about more ranks and longer networks:
//
//   layer_parallel_step --setting=published >>runs.txt                  # calibrates: one rank, 128 steps
//   layer_parallel_step --setting=published --nproc=2 >>runs.txt        # messages; a run to predict
//   layer_parallel_step --setting=published --sequence-length=256 >>runs.txt
//   bazel run //tests/benchmarks:scaling -- --log=runs.txt
//
//   odenet_step --problem=peaks --layers=64 --batches=20 --nproc=1 >>runs.txt              # likewise, with 2 and 4
//   odenet_step --problem=peaks --layers=1024 --biases --train_steps=100 >>runs.txt
//   bazel run //tests/benchmarks:scaling -- --log=runs.txt --calibrate=64 --settings= --steps=64,1024 --most-ranks=1024
//
// For each problem of the log first a Markdown table of measured and predicted seconds per batch: only costs of runs on
// one rank with --calibrate steps are used, so all other rows are predictions; of several runs with the same flags the
// quickest counts, beside it stands their median; the speed-up is over the plain loop, as measured. Then, for each number of steps, seconds serially and the speed-up on 1 to --most-ranks ranks, a core each, for
// the settings of --settings: below 1, layer-parallel loses. Where the log has biases of gradients, the fastest way for
// each number of steps and ranks, weak scaling, what a rank holds, and plots of the former for all problems.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/flags.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/plot/plot.h"
#include "mgrit/scaling/memory_model.h"
#include "mgrit/scaling/scaling_model.h"
#include "tests/benchmarks/fastest_ways.h"
#include "tests/benchmarks/measurements.h"

ABSL_FLAG(std::string, log, "", "output of layer_parallel_step or odenet_step, of any number of runs");
ABSL_FLAG(std::string, calibrate, "128",
          "numbers of steps of the runs on one rank whose costs are used, such as 16,64");
ABSL_FLAG(int, cores, 0, "cores of the machine that was measured; 0: of this one");
ABSL_FLAG(int, most_ranks, 256, "largest number of ranks in the tables");
ABSL_FLAG(std::string, steps, "128,1024,8192", "numbers of steps, a table each");
ABSL_FLAG(std::int64_t, steps_per_rank, 8, "of weak scaling");
ABSL_FLAG(double, bias_limit, 0.1, "of a gradient, for the fastest way");
ABSL_FLAG(std::string, plots, "", "folder for plots of the fastest ways");
ABSL_FLAG(std::string, settings,
          "published;published-cycle;default;levels=3/cfactor=8,4/step=frozen/hold=4,8;"
          "levels=4/cfactor=8/step=frozen/hold=4,16;levels=5/cfactor=4/step=frozen/hold=2,4,8",
          "columns of the tables of speed-ups, separated by ;; empty: no such tables");

namespace plait::benchmarks {
namespace {

using mgrit::scaling::Costs;
using mgrit::scaling::Machine;
using mgrit::scaling::PredictBatch;

base::ToolUsage Usage() {
  return {.name = "scaling",
          .summary = "Predicts seconds per batch from measured costs of steps and messages.",
          .examples = {"scaling --log=runs.txt", "scaling --log=runs.txt --steps=4096 --most-ranks=1024"}};
}

void PrintRow(const MeasuredStep& run, const RunSeconds& measured, double predicted, double serial,
              bool calibrated) {
  std::printf("| `%s` | %lld | %d | %.4f (%.4f) | %.4f | %+.1f %% |", run.setting.c_str(),
              static_cast<long long>(run.steps), run.ranks, measured.quickest, measured.median, predicted,
              100 * (predicted / measured.quickest - 1));
  if (serial > 0) std::printf(" %.2f", serial / measured.quickest);
  std::printf(measured.processor > 0 ? " | %.4f" : " |", measured.processor);
  std::printf(" | %s |\n", calibrated ? "calibrated on" : "predicted");
}

// Of the plain loop too: how its time grows with the steps.
absl::Status PrintPredictions(const Measurements& all, const Measurements& calibration,
                              const std::vector<std::int64_t>& calibrated_on, const Machine& machine) {
  std::printf(
      "| setting | steps | ranks | measured s, quickest run (median) | predicted s | error | speed-up | "
      "processor s "
      "of a rank | |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  std::set<std::tuple<std::string, std::int64_t, int>> shown;
  std::vector<MeasuredStep> runs = all.serial;
  runs.insert(runs.end(), all.parallel.begin(), all.parallel.end());
  double worst = 0, worst_of_shared_cores = 0;
  for (const MeasuredStep& run : runs) {
    if (!shown.insert({run.setting, run.steps, run.ranks}).second) continue;
    const bool serial = run.setting == "serial";
    const RunSeconds measured = SecondsOf(serial ? all.serial : all.parallel, run);
    double predicted = SerialSeconds(calibration, run.steps);
    if (!serial) {
      PLAIT_ASSIGN_OR_RETURN(const Setting setting, ParseSetting(run.setting));
      predicted = PredictBatch(ShapeFor(all, setting, run.steps, run.ranks),
                               CostsFor(calibration, run.setting, run.steps), machine);
    }
    const bool calibrated = run.ranks == 1 && std::find(calibrated_on.begin(), calibrated_on.end(),
                                                        run.steps) != calibrated_on.end();
    double& largest = run.ranks > machine.cores ? worst_of_shared_cores : worst;
    if (!calibrated) largest = std::max(largest, std::abs(predicted / measured.quickest - 1));
    PrintRow(run, measured, predicted, SerialSeconds(all, run.steps), calibrated);
  }
  std::printf("\nLargest error of a prediction: %.1f %% with a core for each rank", 100 * worst);
  if (worst_of_shared_cores > 0)
    std::printf(", %.1f %% where ranks share cores", 100 * worst_of_shared_cores);
  std::printf("\n");
  return absl::OkStatus();
}

struct Column {
  std::string name, key;  // key: as a log has it
  Setting setting;
};

absl::StatusOr<std::vector<Column>> Columns(bool gru) {
  std::vector<Column> columns;
  for (const std::string& text :
       std::vector<std::string>(absl::StrSplit(absl::GetFlag(FLAGS_settings), ';'))) {
    PLAIT_ASSIGN_OR_RETURN(const Setting setting, ParseSetting(text));
    columns.push_back({text, gru ? TextOf(setting) : TextOf(setting.solver), setting});
  }
  return columns;
}

void PrintWins(const std::vector<Column>& columns, const std::vector<std::vector<double>>& speedups) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::vector<double>& own = speedups[i];
    if (own.empty()) continue;
    const auto best = std::max_element(own.begin(), own.end());
    const auto first = std::find_if(own.begin(), own.end(), [](double speedup) { return speedup > 1; });
    std::printf("- `%s`: ", columns[i].name.c_str());
    if (first == own.end()) {
      std::printf("never faster than serial; at best %.2f of its speed, on %d ranks\n", *best,
                  1 << (best - own.begin()));
    } else {
      std::printf("faster than serial from %d ranks on (%.2f times); at best %.1f times, on %d ranks\n",
                  1 << (first - own.begin()), *first, *best, 1 << (best - own.begin()));
    }
  }
}

void PrintTable(const Measurements& all, const Measurements& calibration, const std::vector<Column>& columns,
                std::int64_t steps) {
  const double serial = SerialSeconds(all, steps);
  std::printf("\n%lld steps, serially %.3f s per batch; speed-up over it, a core for each rank:\n\n| ranks |",
              static_cast<long long>(steps), serial);
  for (const Column& column : columns) std::printf(" `%s` |", column.name.c_str());
  std::printf("\n|---|");
  for (std::size_t i = 0; i < columns.size(); ++i) std::printf("---|");
  std::printf("\n");
  std::vector<std::vector<double>> speedups(columns.size());
  for (int ranks = 1; ranks <= absl::GetFlag(FLAGS_most_ranks); ranks *= 2) {
    std::printf("| %d |", ranks);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Setting& setting = columns[i].setting;
      if (!mgrit::LayerParallel::Check(setting.solver, steps).ok()) {
        std::printf(" |");
        continue;
      }
      const Costs costs = CostsFor(calibration, columns[i].key, steps);
      const Machine machine = {.cores = ranks, .contention = calibration.contention};
      speedups[i].push_back(serial /
                            PredictBatch(ShapeFor(calibration, setting, steps, ranks), costs, machine));
      std::printf(" %.2f |", speedups[i].back());
    }
    std::printf("\n");
  }
  std::printf("\n");
  PrintWins(columns, speedups);
}

absl::StatusOr<std::vector<std::int64_t>> StepsOf(const std::string& flag, const std::string& value) {
  std::vector<std::int64_t> all;
  for (const absl::string_view text : absl::StrSplit(value, ',')) {
    all.emplace_back();
    if (!absl::SimpleAtoi(text, &all.back()) || all.back() < 1)
      return absl::InvalidArgumentError(flag + ": expected numbers of steps, such as 128,1024");
  }
  return all;
}

struct Plots {
  data::Plot strong = {.name = "strong-scaling",
                       .title = "Speed-up of the fastest way over serial, predicted",
                       .x_label = "ranks, a core each",
                       .y_label = "speed-up",
                       .log_y = true,
                       .log_x = true,
                       .robust = false};
  data::Plot weak = {.name = "weak-scaling",
                     .title = "A batch of the fastest way, as many steps per rank, predicted",
                     .x_label = "ranks, a core each",
                     .y_label = "batch",
                     .unit = "s",
                     .log_y = true,
                     .log_x = true,
                     .robust = false};
};

absl::Status PrintProblem(const Measurements& all, const std::vector<std::int64_t>& steps, Plots& plots) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> calibrated_on,
                         StepsOf("--calibrate", absl::GetFlag(FLAGS_calibrate)));
  const Measurements calibration = Calibration(all, calibrated_on);
  if (calibration.costs.empty() || calibration.serial.empty() || !all.has_messages) {
    return absl::InvalidArgumentError(absl::StrCat(absl::GetFlag(FLAGS_log), ": ", all.problem,
                                                   " needs a run on one rank with as many steps as "
                                                   "--calibrate says, and one on several ranks (their lines "
                                                   "serial_step, lp_costs, messages)"));
  }
  const int cores = absl::GetFlag(FLAGS_cores);
  const int present = static_cast<int>(std::thread::hardware_concurrency());
  const Machine machine = {
      .cores = cores > 0 ? cores : present, .contention = all.contention, .hand_over = all.hand_over};
  std::printf(
      "### %s\nBatch %.0f%s, a state has %.0f bytes; %d cores; message %.2f us + %.3f ns per byte; all cores "
      "at work: "
      "%.2f times; hand-over where ranks share cores: %.2f ms\n\n",
      all.problem.c_str(), all.batch, all.data == "synthetic" ? ", synthetic data" : "",
      calibration.costs[0].costs.state_bytes, machine.cores, 1e6 * all.latency, 1e9 * all.byte,
      all.contention, 1e3 * all.hand_over);
  PLAIT_RETURN_IF_ERROR(PrintPredictions(all, calibration, calibrated_on, machine));
  if (!absl::GetFlag(FLAGS_settings).empty()) {
    PLAIT_ASSIGN_OR_RETURN(const std::vector<Column> columns, Columns(all.problem == "gru"));
    for (const std::int64_t count : steps) PrintTable(all, calibration, columns, count);
  }
  PLAIT_RETURN_IF_ERROR(PrintFastestWays(all, calibration,
                                         {.steps = steps,
                                          .most_ranks = absl::GetFlag(FLAGS_most_ranks),
                                          .steps_per_rank = absl::GetFlag(FLAGS_steps_per_rank),
                                          .bias_limit = absl::GetFlag(FLAGS_bias_limit)},
                                         plots.strong, plots.weak));
  std::printf("\n");
  return absl::OkStatus();
}

// Of the published setting, on the rank that has most. Counted, not measured: //tests/parity:layer_parallel_memory_test.
void PrintMemory(std::int64_t steps) {
  const Setting setting = PublishedSetting();
  if (!mgrit::LayerParallel::Check(setting.solver, steps).ok()) return;
  std::printf("### Memory\n%lld steps with own parameters, `%s`: what a rank holds behind a backward\n\n",
              static_cast<long long>(steps), TextOf(setting.solver).c_str());
  std::printf("| ranks | own states | states that every rank has | recorded calls |\n|---|---|---|---|\n");
  for (int ranks = 1; ranks <= absl::GetFlag(FLAGS_most_ranks); ranks *= 2) {
    const mgrit::scaling::BatchShape shape = {.solver = setting.solver,
                                              .steps = steps,
                                              .ranks = ranks,
                                              .linearises_ahead = true,
                                              .shares_parameters = false,
                                              .wants_input_gradient = true};
    mgrit::scaling::RankMemory most;
    for (int rank = 0; rank < ranks; ++rank) {
      const mgrit::scaling::RankMemory one = MemoryOf(shape, rank);
      if (one.own() + one.fixed() > most.own() + most.fixed()) most = one;
    }
    std::printf("| %d | %lld | %lld | %lld |\n", ranks, static_cast<long long>(most.own()),
                static_cast<long long>(most.fixed()), static_cast<long long>(most.calls));
  }
  std::printf("\n");
}

absl::Status Draw(const Plots& plots) {
  if (plots.strong.series.empty()) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(
      const std::vector<std::string> texts,
      data::RenderTexts({plots.strong, plots.weak}, {.columns = 100, .rows = 24, .utf8 = true}));
  for (const std::string& text : texts) std::printf("%s\n", text.c_str());
  const std::string folder = base::FromUser(absl::GetFlag(FLAGS_plots));
  if (folder.empty()) return absl::OkStatus();
  return data::WritePictures({plots.strong, plots.weak}, folder).status();
}

absl::Status Run() {
  const std::string path = base::FromUser(absl::GetFlag(FLAGS_log));
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "--log=FILE is needed: the output of layer_parallel_step or odenet_step");
  }
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Measurements> problems, ReadMeasurements(path));
  if (problems.empty())
    return absl::InvalidArgumentError(path + ": no line of layer_parallel_step or odenet_step");
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> steps,
                         StepsOf("--steps", absl::GetFlag(FLAGS_steps)));
  Plots plots;
  for (const Measurements& all : problems) PLAIT_RETURN_IF_ERROR(PrintProblem(all, steps, plots));
  if (!plots.strong.series.empty()) PrintMemory(*std::max_element(steps.begin(), steps.end()));
  return Draw(plots);
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  plait::base::ParseFlagsOrExit(argc, argv, plait::benchmarks::Usage());
  const absl::Status status = plait::benchmarks::Run();
  if (!status.ok()) std::fprintf(stderr, "scaling: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
