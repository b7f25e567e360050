// Runs the checks of docs/gpu.md on a machine with a GPU.
#include <stdlib.h>
#include <torch/headeronly/version.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/flags.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/session_main.h"
#include "data/hdf5/atomic_file.h"
#include "tools/device/device.h"
#include "tools/gpu_checks/check.h"
#include "tools/revision/revision.h"

ABSL_FLAG(std::string, checks, "", "comma-separated names of the checks to run (default: all)");
ABSL_FLAG(bool, list, false, "list the checks and exit");
ABSL_FLAG(std::string, programs, "",
          "directory with test_dist, the trainers, doctor and conformance_nccl_test_on_ranks "
          "(default: that of gpu_checklist)");
ABSL_FLAG(std::string, report, "gpu_report.txt", "file for the report");
ABSL_FLAG(std::string, log, "",
          "file to which the commands that checks run and what they print are appended");

namespace plait::gpu_checks {
namespace {

constexpr int kUsageError = 2;

base::ToolUsage Usage() {
  return {
      .name = "gpu_checklist",
      .summary =
          "Checks the GPU code on a machine with a GPU: one line per check, PASSED, FAILED or SKIPPED, and "
          "a report. The exit code is 0 if no check failed and at least one passed.",
      .examples = {"gpu_checklist", "gpu_checklist --checks=gru_cell,layer_parallel"},
      .groups = {{"Checks", {"checks", "list", "programs"}}, {"Output", {"report", "log"}}}};
}

int Fail(const std::string& message, int code) {
  std::fprintf(stderr, "gpu_checklist: %s\n", message.c_str());
  return code;
}

std::vector<std::pair<std::string, std::string>> Facts(const Programs& programs, const std::string& host) {
  std::string gpus =
      programs.run({"nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"})
          .output;
  absl::StripAsciiWhitespace(&gpus);
  return {{"date", absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::Now(), absl::UTCTimeZone())},
          {"host", host},
          {"GPUs (name, driver, memory)", absl::StrReplaceAll(gpus, {{"\n", "; "}})},
          {"LibTorch", TORCH_VERSION},
          {"revision", Revision()}};
}

absl::Status RunChecks(const std::vector<Check>& checks, const comm::Session& session,
                       const std::string& host, int gpus, std::vector<Finished>& finished) {
  const std::string path = base::FromUser(absl::GetFlag(FLAGS_report));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(base::ProbeWritableFile(path), "--report"));
  char scratch[] = "/tmp/gpu_checklist.XXXXXX";
  if (mkdtemp(scratch) == nullptr) return absl::UnavailableError("/tmp: cannot create a directory");
  std::string programs = base::FromUser(absl::GetFlag(FLAGS_programs));
  if (programs.empty()) programs = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  const Context context = {
      .world = session.world(),
      .device = c10::Device(c10::kCUDA, 0),
      .gpus = gpus,
      .programs = ProgramsOfMachine(programs, scratch, base::FromUser(absl::GetFlag(FLAGS_log)))};
  for (const Check& check : checks) {
    finished.push_back({check, RunCheck(check, context)});
    std::printf("%s\n", Line(check, finished.back().result).c_str());
    std::fflush(stdout);
  }
  const absl::Status written = data::WriteWholeFile(path, Report(Facts(context.programs, host), finished));
  base::RemoveTree(scratch);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(written, "--report"));
  std::printf("%s; report in %s\n", Summary(finished).c_str(), path.c_str());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  base::ParseFlagsOrExit(argc, argv, Usage(), /*rank=*/0);
  const absl::StatusOr<std::vector<Check>> checks = Select(AllChecks(), absl::GetFlag(FLAGS_checks));
  if (!checks.ok()) return Fail(std::string(checks.status().message()), kUsageError);
  if (absl::GetFlag(FLAGS_list)) {
    for (const Check& check : *checks) std::printf("%s: %s\n", check.name.c_str(), check.what.c_str());
    return 0;
  }
  const device::RankFacts facts = device::DetectRankFacts({});
  if (facts.gpus == 0) {
    return Fail(
        absl::StrCat("LibTorch finds no GPU on ", facts.host, facts.obstacle.empty() ? "" : ": ",
                     facts.obstacle,
                     "; run this on a machine with one, and check CUDA_VISIBLE_DEVICES and the driver "
                     "with nvidia-smi"),
        1);
  }
  std::vector<Finished> finished;
  const int code = comm::RunMain(argc, argv, {.device_backend = comm::NcclBackendFactory()},
                                 [&](const comm::Session& session) {
                                   return RunChecks(*checks, session, facts.host, facts.gpus, finished);
                                 });
  return code != 0 ? code : ExitCode(finished);
}

}  // namespace
}  // namespace plait::gpu_checks

int main(int argc, char** argv) { return plait::gpu_checks::Main(argc, argv); }
