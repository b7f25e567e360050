#include "tools/gpu_checks/program_runs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "comm/launch/launch_command.h"
#include "comm/launch/starter.h"

namespace plait::gpu_checks {
namespace {

constexpr char kSecondsOfRun[] = "90";  // some ten are usual

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

bool Has(const Context& context, const std::string& program) { return context.programs.exists(program); }

Result Skipped(absl::string_view why) { return {Outcome::kSkipped, std::string(why)}; }

std::string PathOf(const Context& context, const std::string& program) {
  return absl::StrCat(context.programs.directory, "/", program);
}

Result Missing(const Context& context, absl::string_view program) {
  return Skipped(absl::StrCat("no ", program, " in ", context.programs.directory));
}

Result Failed(const ProgramRun& run) {
  std::string last = "no output";
  for (const absl::string_view line : absl::StrSplit(run.output, '\n', absl::SkipWhitespace())) {
    if (absl::StartsWith(line, "-----")) break;
    last = std::string(line);
  }
  return {Outcome::kFailed, absl::StrCat("exit code ", run.code, ": ", last)};
}

std::string ObstacleToRanks(const Context& context, int ranks) {
  if (!Has(context, "mpirun")) return "no mpirun on the PATH";
  if (context.gpus >= ranks || geteuid() == 0) return "";
  return absl::StrCat("needs ", ranks, " GPUs, or root, whose ranks can share one; this machine has ",
                      context.gpus);
}

std::vector<std::string> CommandOfRanks(const Context& context, int ranks) {
  std::vector<std::string> command = {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                      "OMP_NUM_THREADS=1"};
  const std::vector<std::string> start = {"timeout", "--kill-after=5",    kSecondsOfRun,     "mpirun",
                                          "-n",      absl::StrCat(ranks), "--oversubscribe", "--bind-to",
                                          "none"};
  const bool shared = context.gpus < ranks;
  if (shared) command.push_back("NCCL_SOCKET_IFNAME=lo");
  command.insert(command.end(), start.begin(), start.end());
  if (shared) {
    command.insert(command.end(), {"unshare", "--uts", "sh", "-c",
                                   "hostname gpu-node-$OMPI_COMM_WORLD_RANK && exec \"$0\" \"$@\""});
  }
  return command;
}

double LossError(const std::vector<double>& actual, const std::vector<double>& expected) {
  if (expected.empty() || actual.size() != expected.size()) return HUGE_VAL;
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(actual[i] / expected[i] - 1);
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  return worst;
}

std::string TextFile(const Context& context) {
  const std::string path = context.programs.scratch + "/text.txt";
  std::ofstream file(path);
  for (int line = 0; line < 400; ++line) file << "line " << line * line << " of a text to train on\n";
  return path;
}

std::vector<double> TrainerLosses(const std::string& output) {
  std::vector<double> losses;
  const std::string text = absl::StrReplaceAll(output, {{"Loss: ", "loss="}, {"\t", " "}, {"\n", " "}});
  const std::vector<absl::string_view> parts = absl::StrSplit(text, "loss=");
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::vector<absl::string_view> number =
        absl::StrSplit(parts[i], absl::MaxSplits(absl::ByAnyChar(" ,"), 1));
    losses.push_back(HUGE_VAL);  // where it is no number
    if (!absl::SimpleAtod(number[0], &losses.back())) losses.back() = HUGE_VAL;
  }
  return losses;
}

Programs ProgramsOfMachine(const std::string& directory, const std::string& scratch, const std::string& log) {
  const auto exists = [directory](const std::string& name) {
    if (name == "mpirun") return !comm::ProcessCommands().real_path(name).empty();
    std::error_code error;
    return std::filesystem::is_regular_file(directory + "/" + name, error);
  };
  const auto run = [log](const std::vector<std::string>& command) {
    const ProgramRun done = RunProgram(command);
    if (!log.empty()) {
      std::ofstream(log, std::ios::app) << base::ShellCommand(command) << "\n"
                                        << done.output << "exit code " << done.code << "\n\n";
    }
    return done;
  };
  return {.directory = directory, .scratch = scratch, .exists = exists, .run = run};
}

}  // namespace plait::gpu_checks
