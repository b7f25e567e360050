#include "tools/launch_parts/flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/path.h"

namespace plait::launching {

// A number of things, at least one; 0, shown as nothing, where the flag is not given.
struct Count {
  int value = 0;
};
bool AbslParseFlag(absl::string_view text, Count* count, std::string* error) {
  if (absl::SimpleAtoi(text, &count->value) && count->value >= 1) return true;
  *error = "expected a positive integer";
  return false;
}
std::string AbslUnparseFlag(const Count& count) { return count.value == 0 ? "" : absl::StrCat(count.value); }

struct Duration {
  double seconds = 0;
};
bool AbslParseFlag(absl::string_view text, Duration* duration, std::string* error) {
  const absl::StatusOr<double> seconds = ParseSeconds(std::string(text));
  if (seconds.ok()) duration->seconds = *seconds;
  *error = seconds.ok() ? "" : std::string(seconds.status().message());
  return seconds.ok();
}
std::string AbslUnparseFlag(const Duration& duration) {
  return duration.seconds == 0 ? "none" : absl::StrCat(duration.seconds, "s");
}

absl::StatusOr<double> ParseSeconds(const std::string& text) {
  if (text == "none") return 0;
  const std::size_t digits = std::min(text.find_last_of("0123456789.") + 1, text.size());
  const std::string unit = text.substr(digits);
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : -1;
  double number = 0;
  const bool valid =
      factor > 0 && absl::SimpleAtod(text.substr(0, digits), &number) && number >= 0 && number < 1e9;
  if (valid) return number * factor;
  return absl::InvalidArgumentError("expected a duration such as 30s, 1.5m or 2h, or none");
}

}  // namespace plait::launching

using plait::launching::Count;
using plait::launching::Duration;

ABSL_FLAG(Count, nproc, {},
          "number of ranks (default: one per accelerator, else the scheduler's slots, else one per core)");
ABSL_FLAG(Count, nhosts, {}, "use the first N of the job's hosts (default: all)");
ABSL_FLAG(Count, ppn, {}, "ranks per host");
ABSL_FLAG(std::string, hostfile, "",
          "file with one host per line, in the format of mpirun, mpiexec or PBS (default: the job's)");
ABSL_FLAG(
    std::string, bind, "auto",
    "bind ranks to: none, core, depth (neighbouring cores, divided evenly), hwthread, socket, numa; auto: "
    "depth or core if there is a core for each rank, else none");
ABSL_FLAG(
    std::string, starter, "auto",
    "mpirun, mpiexec or srun; auto: srun in a Slurm job if it supports the installed MPI, else the one on "
    "the PATH");
ABSL_FLAG(Duration, idle_timeout, {}, "stop the job if no rank writes output for this long; exit code 124");
ABSL_FLAG(Duration, timeout, {}, "stop the job after this long; exit code 124");
ABSL_FLAG(Duration, grace, {10},
          "time to finish after SIGINT, SIGTERM or SIGHUP, before SIGTERM and then SIGKILL are sent");
ABSL_FLAG(std::string, log_dir, "",
          "directory for rank-0003.log, ...: the output of each rank in order of arrival; existing logs are "
          "deleted");
ABSL_FLAG(bool, label, false, "prefix each line with its rank");
ABSL_FLAG(bool, dry_run, false, "print hosts, devices and the command without starting anything");

namespace plait::launching {

base::ToolUsage Usage() {
  return {
      .name = "launch",
      .summary =
          "Starts a program on the ranks of this machine or job and supervises it: forwards signals, stops "
          "jobs that hang, leaves no process behind, and prints the root cause last: which rank failed "
          "first, and how. Exit code: the job's (128 + signal); 124 after a timeout; 2 for wrong flags.",
      .examples = {"launch -- hostname             # all cores, accelerators or hosts of the job",
                   "launch --dry-run               # hosts, cores and the command",
                   "launch --nproc=2 --label -- hostname",
                   "launch --idle-timeout=5m --log-dir=logs -- hostname"},
      .groups = {{"Ranks", {"nproc", "nhosts", "ppn", "hostfile", "bind", "starter"}},
                 {"Supervision", {"idle_timeout", "timeout", "grace"}},
                 {"Output", {"log_dir", "label", "dry_run"}}},
      .positional = "-- PROGRAM [ARGUMENT ...]"};
}

Settings SettingsFromFlags(std::vector<std::string> program) {
  return {.nproc = absl::GetFlag(FLAGS_nproc).value,
          .nhosts = absl::GetFlag(FLAGS_nhosts).value,
          .ppn = absl::GetFlag(FLAGS_ppn).value,
          .host_file = base::FromUser(absl::GetFlag(FLAGS_hostfile)),
          .bind = absl::GetFlag(FLAGS_bind),
          .starter = absl::GetFlag(FLAGS_starter),
          .idle_timeout_seconds = absl::GetFlag(FLAGS_idle_timeout).seconds,
          .timeout_seconds = absl::GetFlag(FLAGS_timeout).seconds,
          .grace_seconds = absl::GetFlag(FLAGS_grace).seconds,
          .log_folder = base::FromUser(absl::GetFlag(FLAGS_log_dir)),
          .label = absl::GetFlag(FLAGS_label),
          .dry_run = absl::GetFlag(FLAGS_dry_run),
          .program = std::move(program)};
}

}  // namespace plait::launching
