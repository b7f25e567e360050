#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "comm/launch/launch_command.h"
#include "comm/launch/starter.h"
#include "tools/gpu_checks/check.h"

namespace plait::gpu_checks {
namespace {

constexpr char kSteps[] = "12";
constexpr const char* kStrategies[] = {"ddp", "zero1", "zero2", "fsdp"};

// Both devices compute float32 products with sums of up to 1,024 terms, in different orders; the first steps
// of Adam divide each gradient by its own size, which turns rounding errors of gradients near zero into
// errors of up to lr = 1e-3 in single parameters.
constexpr double kLossTolerance = 1e-3;

Result Skipped(absl::string_view why) { return {Outcome::kSkipped, std::string(why)}; }

bool Has(const Context& context, const std::string& program) { return context.programs.exists(program); }

std::string PathOf(const Context& context, const std::string& program) {
  return absl::StrCat(context.programs.directory, "/", program);
}

Result Missing(const Context& context, absl::string_view program) {
  return Skipped(absl::StrCat("no ", program, " in ", context.programs.directory));
}

// With the exit code and the last line of the output, where programs print their error.
Result Failed(const ProgramRun& run) {
  const std::vector<std::string> lines = absl::StrSplit(run.output, '\n', absl::SkipWhitespace());
  return {Outcome::kFailed,
          absl::StrCat("exit code ", run.code, ": ", lines.empty() ? "no output" : lines.back())};
}

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

// Relative; infinite where a run has no losses or another number of them.
double LossError(const std::vector<double>& actual, const std::vector<double>& expected) {
  if (expected.empty() || actual.size() != expected.size()) return HUGE_VAL;
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(actual[i] / expected[i] - 1);
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  return worst;
}

bool PassedOnCuda(const ProgramRun& run) {
  return run.code == 0 && absl::StrContains(run.output, "DEVICE=cuda") &&
         absl::StrContains(run.output, "parameters are bitwise identical");
}

ProgramRun RunProgram(const std::vector<std::string>& command) {
  FILE* pipe = popen((base::ShellCommand(command) + " 2>&1 </dev/null").c_str(), "re");
  if (pipe == nullptr) return {.code = -1, .output = ""};
  ProgramRun run;
  char buffer[4096];
  for (std::size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) run.output.append(buffer, got);
  const int status = pclose(pipe);
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

}  // namespace

Programs ProgramsOfMachine(const std::string& directory, const std::string& scratch) {
  const auto exists = [directory](const std::string& name) {
    if (name == "mpirun") return !comm::ProcessCommands().real_path(name).empty();
    std::error_code error;
    return std::filesystem::is_regular_file(directory + "/" + name, error);
  };
  return {.directory = directory, .scratch = scratch, .exists = exists, .run = RunProgram};
}

Result CheckNccl(const Context& context) {
  const std::string program = "conformance_nccl_test";
  if (!Has(context, program)) return Missing(context, program);
  const ProgramRun run = context.programs.run({PathOf(context, program)});
  const std::vector<std::string> passed = absl::StrSplit(run.output, absl::MaxSplits("[  PASSED  ] ", 1));
  if (run.code != 0 || passed.size() != 2) return Failed(run);
  const std::vector<std::string> line = absl::StrSplit(passed[1], absl::MaxSplits('\n', 1));
  return {Outcome::kPassed, line[0]};
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
