#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/gpu_checks/check.h"
#include "tools/gpu_checks/program_runs.h"

namespace plait::gpu_checks {
namespace {

constexpr char kSteps[] = "12";
constexpr const char* kStrategies[] = {"ddp", "zero1", "zero2", "fsdp"};

// Both devices compute float32 products with sums of up to 1,024 terms, in different orders; the first steps
// of Adam divide each gradient by its own size, which turns rounding errors of gradients near zero into
// errors of up to lr = 1e-3 in single parameters.
constexpr double kLossTolerance = 1e-3;

// Of lines "iter=3, loss=1091.08, ...".
std::vector<double> Losses(const std::string& output) {
  std::vector<double> losses;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(", loss=", 1));
    if (parts.size() != 2 || !absl::StrContains(parts[0], "iter=")) continue;
    double loss = 0;
    const std::vector<absl::string_view> number = absl::StrSplit(parts[1], absl::MaxSplits(',', 1));
    if (absl::SimpleAtod(number[0], &loss)) losses.push_back(loss);
  }
  return losses;
}

ProgramRun RunTestDist(const Context& context, const std::string& name,
                       const std::vector<std::string>& flags) {
  std::vector<std::string> command = {PathOf(context, "test_dist"), absl::StrCat("--train-iters=", kSteps),
                                      "--no-plots", "--no-trace",
                                      absl::StrCat("--outputs=", context.programs.scratch, "/", name)};
  command.insert(command.end(), flags.begin(), flags.end());
  return context.programs.run(command);
}

// Few steps of a small model, without dropout.
std::vector<std::string> SmallRun(const Context& context, const std::string& program) {
  if (program == "train_gpt") {
    return {"--data=" + TextFile(context),
            "--max-iters=4",
            "--log-interval=1",
            "--eval-interval=4",
            "--eval-iters=2",
            "--gradient-accumulation-steps=2",
            "--sample-tokens=8"};
  }
  if (program == "train_llama") {
    return {"--max-iters=4",  "--n-layers=3", "--dim=64",       "--n-heads=4",
            "--n-kv-heads=2", "--hidden=96",  "--vocab-size=60"};
  }
  if (program == "train_vit") {
    return {"--preset=cpu",    "--depth=2",     "--dropout=0",     "--max-samples=64",
            "--batch-size=16", "--max-iters=4", "--log-interval=1"};
  }
  if (program == "train_odenet") {
    return {"--layers=8", "--samples=200", "--validation-samples=50", "--batch-size=50", "--epochs=1"};
  }
  if (program == "train_cnn") {
    return {"--epochs=1", "--max-samples=96", "--batch-size=32", "--dropout1=0", "--dropout2=0"};
  }
  return {"--epochs=1", "--percent-data=0.02", "--batch-size=20", "--log-interval=1", "--force-lp"};
}

ProgramRun RunTrainer(const Context& context, const std::string& program, const std::string& device) {
  std::vector<std::string> command = {
      PathOf(context, program),
      "--nproc=1",
      "--device=" + device,
      "--dtype=float64",
      "--no-plots",
      absl::StrCat("--outputs=", context.programs.scratch, "/", program, "_", device)};
  const std::vector<std::string> flags = SmallRun(context, program);
  command.insert(command.end(), flags.begin(), flags.end());
  return context.programs.run(command);
}

bool PassedOnCuda(const ProgramRun& run) {
  return run.code == 0 && absl::StrContains(run.output, "DEVICE=cuda") &&
         absl::StrContains(run.output, "parameters are bitwise identical");
}

}  // namespace

Result CheckNccl(const Context& context) {
  const std::string program = "conformance_nccl_test_on_ranks";
  if (!Has(context, program)) return Missing(context, program);
  std::vector<std::string> numbers;
  for (const int ranks : {1, 2, 4}) {
    if (ranks > 1 && !ObstacleToRanks(context, ranks).empty()) break;
    std::vector<std::string> command;
    if (ranks > 1) command = CommandOfRanks(context, ranks);
    command.push_back(PathOf(context, program));
    const ProgramRun run = context.programs.run(command);
    const std::vector<std::string> passed = absl::StrSplit(run.output, absl::MaxSplits("[  PASSED  ] ", 1));
    if (run.code != 0 || passed.size() != 2) {
      const Result failed = Failed(run);
      return {failed.outcome, absl::StrCat(ranks, ranks == 1 ? " rank: " : " ranks: ", failed.numbers)};
    }
    const std::vector<std::string> line = absl::StrSplit(passed[1], absl::MaxSplits('\n', 1));
    numbers.push_back(absl::StrCat(ranks, ranks == 1 ? " rank: " : " ranks: ", line[0]));
  }
  return {Outcome::kPassed, absl::StrJoin(numbers, " ")};
}

Result CheckTestDist(const Context& context) {
  if (!Has(context, "test_dist")) return Missing(context, "test_dist");
  const ProgramRun host = RunTestDist(context, "cpu", {"--nproc=1", "--device=cpu"});
  const std::vector<double> expected = Losses(host.output);
  if (host.code != 0 || expected.empty()) return Failed(host);
  double worst = 0;
  for (const std::string strategy : kStrategies) {
    const ProgramRun run =
        RunTestDist(context, "cuda_" + strategy, {"--nproc=1", "--device=cuda", "--strategy=" + strategy});
    if (!PassedOnCuda(run)) return Failed(run);
    worst = std::max(worst, LossError(Losses(run.output), expected));
  }
  Result result = Compared(worst, kLossTolerance);
  absl::StrAppend(&result.numbers, " (relative, of ", std::size(kStrategies), " strategies)");
  return result;
}

Result CheckTestDistRanks(const Context& context) {
  if (context.gpus < 2) {
    return Skipped(absl::StrCat("needs two GPUs; this machine has ", context.gpus));
  }
  if (!Has(context, "test_dist")) return Missing(context, "test_dist");
  if (!Has(context, "mpirun")) return Skipped("no mpirun on the PATH");
  const ProgramRun run =
      RunTestDist(context, "ranks", {absl::StrCat("--nproc=", context.gpus), "--device=cuda"});
  if (!PassedOnCuda(run)) return Failed(run);
  return {Outcome::kPassed, absl::StrCat(context.gpus, " ranks")};
}

Result CheckTrainer(const Context& context, const std::string& program) {
  if (!Has(context, program)) return Missing(context, program);
  const ProgramRun host = RunTrainer(context, program, "cpu");
  const std::vector<double> expected = TrainerLosses(host.output);
  if (host.code != 0 || expected.empty()) return Failed(host);
  const ProgramRun run = RunTrainer(context, program, "cuda");
  const bool on_cuda = absl::StrContains(run.output, "DEVICE=cuda");
  if (run.code != 0 || !on_cuda) return Failed(run);
  Result result = Compared(LossError(TrainerLosses(run.output), expected), kTrainerTolerance);
  absl::StrAppend(&result.numbers, " (relative, of ", expected.size(), " losses)");
  return result;
}

Result CheckDoctor(const Context& context) {
  if (!Has(context, "doctor")) return Missing(context, "doctor");
  const ProgramRun run =
      context.programs.run({PathOf(context, "doctor"), "--nproc=1", "--folder=" + context.programs.scratch});
  int ok = 0, warnings = 0;
  for (const absl::string_view line : absl::StrSplit(run.output, '\n')) {
    if (absl::StartsWith(line, "ERROR")) return {Outcome::kFailed, std::string(line)};
    ok += absl::StartsWith(line, "OK");
    warnings += absl::StartsWith(line, "WARNING");
  }
  if (run.code != 0 || ok == 0) return Failed(run);
  return {Outcome::kPassed, absl::StrCat(ok, " OK, ", warnings, " WARNING")};
}

}  // namespace plait::gpu_checks
