// The model of scaling against measured runs, and what it says about more ranks and longer sequences:
//
//   layer_parallel_step --setting=published >>runs.txt                  # calibrates: one rank, 128 steps
//   layer_parallel_step --setting=published --nproc=2 >>runs.txt        # messages; a run to predict
//   layer_parallel_step --setting=published --sequence-length=256 >>runs.txt
//   bazel run //tests/benchmarks:scaling -- --log=runs.txt
//
// First a Markdown table of measured and predicted seconds per batch: only costs of runs on one rank with
// --calibrate steps are used, so all other rows are predictions. Then, for each number of steps, seconds
// serially and the speed-up on 1 to --most-ranks ranks, a core each, for the settings of --settings: below 1,
// layer-parallel loses.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/flags.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "mgrit/scaling/scaling_model.h"
#include "tests/benchmarks/measurements.h"
#include "tests/benchmarks/spread.h"

ABSL_FLAG(std::string, log, "", "output of layer_parallel_step, of any number of runs");
ABSL_FLAG(int, calibrate, 128, "steps of the runs on one rank whose costs are used");
ABSL_FLAG(int, cores, 0, "cores of the machine that was measured; 0: of this one");
ABSL_FLAG(int, most_ranks, 256, "largest number of ranks in the tables");
ABSL_FLAG(std::string, steps, "128,1024,8192", "numbers of steps, a table each");
ABSL_FLAG(std::string, settings,
          "published;published-cycle;default;levels=3/cfactor=8,4/step=frozen/hold=4,8;"
          "levels=4/cfactor=8/step=frozen/hold=4,16;levels=5/cfactor=4/step=frozen/hold=2,4,8",
          "columns of the tables, separated by ;");

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

double MedianSeconds(const std::vector<MeasuredStep>& all, const MeasuredStep& like) {
  std::vector<double> seconds;
  for (const MeasuredStep& one : all) {
    if (one.setting == like.setting && one.ranks == like.ranks && one.steps == like.steps)
      seconds.push_back(one.seconds);
  }
  return SpreadOf(seconds).median;
}

// Only runs that calibrate.
Measurements Calibration(Measurements all, std::int64_t steps) {
  std::erase_if(all.costs, [&](const MeasuredCosts& run) { return run.steps != steps; });
  return all;
}

absl::Status PrintPredictions(const Measurements& all, const Measurements& calibration,
                              const Machine& machine) {
  std::printf(
      "| setting | steps | ranks | measured s | predicted s | error | |\n|---|---|---|---|---|---|---|\n");
  std::map<std::tuple<std::string, std::int64_t, int>, bool> shown;
  double worst = 0;
  for (const MeasuredStep& run : all.parallel) {
    if (!shown.insert({{run.setting, run.steps, run.ranks}, true}).second) continue;
    PLAIT_ASSIGN_OR_RETURN(const Setting setting, ParseSetting(run.setting));
    const Costs costs = CostsFor(calibration, run.setting, run.steps);
    const double measured = MedianSeconds(all.parallel, run);
    const double predicted = PredictBatch(ShapeOf(setting, run.steps, run.ranks), costs, machine);
    const double error = predicted / measured - 1;
    const bool calibrated = run.ranks == 1 && run.steps == absl::GetFlag(FLAGS_calibrate);
    if (!calibrated) worst = std::max(worst, std::abs(error));
    std::printf("| `%s` | %lld | %d | %.4f | %.4f | %+.1f %% | %s |\n", run.setting.c_str(),
                static_cast<long long>(run.steps), run.ranks, measured, predicted, 100 * error,
                calibrated ? "calibrated on" : "predicted");
  }
  std::printf("\nLargest error of a prediction: %.1f %%\n", 100 * worst);
  return absl::OkStatus();
}

// Of one step of the plain loop: the run nearest in length.
double SerialStepSeconds(const Measurements& all, std::int64_t steps) {
  const MeasuredStep* nearest = nullptr;
  const auto distance = [&](const MeasuredStep& run) {
    return std::abs(std::log(static_cast<double>(run.steps) / static_cast<double>(steps)));
  };
  for (const MeasuredStep& run : all.serial) {
    if (nearest == nullptr || distance(run) < distance(*nearest)) nearest = &run;
  }
  if (nearest == nullptr) return 0;
  return MedianSeconds(all.serial, *nearest) / static_cast<double>(nearest->steps);
}

struct Column {
  std::string name;
  Setting setting;
};

absl::StatusOr<std::vector<Column>> Columns() {
  std::vector<Column> columns;
  for (const std::string& text :
       std::vector<std::string>(absl::StrSplit(absl::GetFlag(FLAGS_settings), ';'))) {
    PLAIT_ASSIGN_OR_RETURN(const Setting setting, ParseSetting(text));
    columns.push_back({text, setting});
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
  const double serial = SerialStepSeconds(all, steps) * static_cast<double>(steps);
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
      const Costs costs = CostsFor(calibration, TextOf(setting), steps);
      const Machine machine = {.cores = ranks, .contention = calibration.contention};
      speedups[i].push_back(serial / PredictBatch(ShapeOf(setting, steps, ranks), costs, machine));
      std::printf(" %.2f |", speedups[i].back());
    }
    std::printf("\n");
  }
  std::printf("\n");
  PrintWins(columns, speedups);
}

absl::Status Run() {
  const std::string path = base::FromUser(absl::GetFlag(FLAGS_log));
  if (path.empty())
    return absl::InvalidArgumentError("--log=FILE is needed: the output of layer_parallel_step");
  PLAIT_ASSIGN_OR_RETURN(const Measurements all, ReadMeasurements(path));
  const Measurements calibration = Calibration(all, absl::GetFlag(FLAGS_calibrate));
  if (calibration.costs.empty() || !all.has_messages || all.serial.empty()) {
    return absl::InvalidArgumentError(path +
                                      ": needs a run on one rank with as many steps as --calibrate says, and "
                                      "one on several ranks (their lines serial_step, lp_costs, messages)");
  }
  const int cores = absl::GetFlag(FLAGS_cores);
  const int present = static_cast<int>(std::thread::hardware_concurrency());
  const Machine machine = {
      .cores = cores > 0 ? cores : present, .contention = all.contention, .hand_over = all.hand_over};
  std::printf(
      "Batch %.0f, hidden %.0f; %d cores; message %.2f us + %.3f ns per byte; all cores at work: %.2f "
      "times; hand-over where ranks share cores: %.2f ms\n\n",
      all.batch, all.hidden, machine.cores, 1e6 * all.latency, 1e9 * all.byte, all.contention,
      1e3 * all.hand_over);
  PLAIT_RETURN_IF_ERROR(PrintPredictions(all, calibration, machine));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Column> columns, Columns());
  for (const absl::string_view text : absl::StrSplit(absl::GetFlag(FLAGS_steps), ',')) {
    std::int64_t steps = 0;
    if (!absl::SimpleAtoi(text, &steps) || steps < 1) {
      return absl::InvalidArgumentError("--steps: expected numbers of steps, such as 128,1024");
    }
    PrintTable(all, calibration, columns, steps);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  plait::base::ParseFlagsOrExit(argc, argv, plait::benchmarks::Usage());
  const absl::Status status = plait::benchmarks::Run();
  if (!status.ok()) std::fprintf(stderr, "scaling: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
