#include "tools/training/program.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/keep_freed_memory.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "comm/launch/dist_info.h"
#include "comm/launch/job.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/run_on_ranks.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/session_main.h"
#include "tools/device/device.h"
#include "tools/revision/revision.h"
#include "tools/training/agreement.h"
#include "tools/training/dry_run.h"
#include "tools/training/mesh.h"
#include "tools/training/resume.h"

namespace plait::training {
namespace {

constexpr int kUsageError = 2;
constexpr double kStartSeconds = 120;  // for each step of the ranks' start, with --timeout at least that
constexpr double kGraceSeconds = 10;   // of ranks that have nothing to save

// Lines of rank 0 go above the progress bar.
absl::StatusOr<base::Log> MakeLog(int rank, Console& console) {
  base::LogOptions options = {.rank = rank, .stream = base::LogStream::kStandardOutput};
  if (rank != 0) return base::MakeLog(options);
  const bool colour = base::DetectTerminal(1).colour;
  options.colour = colour ? base::LogColour::kAlways : base::LogColour::kNever;
  return base::MakeLog(options, [&console](absl::string_view line) {
    console.Print(std::string(absl::StripSuffix(line, "\n")));
  });
}

absl::StatusOr<int> NumberOfRanks(const Settings& settings, const comm::Launcher& launcher) {
  const auto with_default = [&](int ranks) {
    return RanksOfRun(settings.nproc, settings.mesh, launcher, ranks);
  };
  // To count GPUs starts CUDA: only where the default makes a difference.
  const absl::StatusOr<int> of_one = with_default(1), of_two = with_default(2);
  if (of_one.ok() && of_two.ok() && *of_one == *of_two) return of_one;
  return with_default(settings.DefaultRanks());
}

// The number of ranks that the run will have, with the settings checked for it; with --resume as far as they do not come
// from the checkpoint, RunOnRank() checks the rest.
absl::StatusOr<int> CheckedRanks(Settings& settings, const SettingsTable& table,
                                 const comm::Launcher& launcher) {
  PLAIT_ASSIGN_OR_RETURN(const int ranks, NumberOfRanks(settings, launcher));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<comm::MeshAxis> axes, settings.Axes(ranks));
  settings.Complete(axes);
  if (!settings.resume.empty()) {
    PLAIT_RETURN_IF_ERROR(settings.CheckStart());
    return ranks;
  }
  PLAIT_RETURN_IF_ERROR(settings.CheckGiven(table));
  PLAIT_RETURN_IF_ERROR(settings.Check(axes));
  return ranks;
}

// The ranks along these axes together, as far as the mesh has them.
absl::StatusOr<comm::Communicator> RanksAlong(const comm::DeviceMesh& mesh, std::vector<std::string> axes,
                                              const std::string& name) {
  std::erase_if(axes, [&mesh](const std::string& axis) { return !mesh.Has(axis); });
  if (axes.size() == mesh.axes().size()) return mesh.world();
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh folded, mesh.Fold(axes, {{name, -1}}));
  return folded.axis(name);
}

void ReportStart(const Program& program, Run& run) {
  const std::string strategy = absl::AsciiStrToUpper(run.settings.strategy);
  const int gpu = run.device.is_cpu() ? -1 : run.device.index();
  run.environment = ReportStartup(run.mesh, {.strategy = strategy, .gpu = gpu}, run.log);
  run.log.Info("\n\n" + comm::BulletBlock("CONFIG", program.config_block(run), run.environment.utf8));
}

// A run without checkpoints has nothing to do after a signal but to end.
bool PollsStopSignals(const Settings& settings) {
  return !settings.checkpoint_dir.empty() && !settings.eval_only;
}

// Flags that a repetition must not reuse are commented out: where the run wrote, and what it resumed from.
std::string FlagFile(const std::string& program, const SettingsTable& table,
                     const std::vector<std::string>& derived, int ranks, bool resumed) {
  return absl::StrCat(
      "# ", program, " --flagfile=THIS_FILE ",
      resumed ? "begins a run like this one, which was resumed: " : "repeats this run: ", ranks,
      ranks == 1 ? " rank" : " ranks", ", revision ", Revision(), "\n",
      table.FlagFile({"outputs", "history", "checkpoint_dir", "checkpoint_interval", "keep_last", "grace",
                      "resume", "save_model", "eval_only", "prepare_only", "dry_run"},
                     derived));
}

absl::Status TakeSizes(const Program& program, const std::vector<comm::MeshAxis>& axes, Run& run) {
  if (!program.take_sizes) return absl::OkStatus();
  const NamedValues before = run.table.Values();
  PLAIT_RETURN_IF_ERROR(program.take_sizes(run));
  program.settings.sizes_taken = true;
  PLAIT_RETURN_IF_ERROR(base::Prefixed(run.table.CheckUnchanged(before), "--init-from"));
  return program.settings.Check(axes);
}

// `ranks`: number of ranks of the run; a dry run plans them without starting them.
absl::Status RunOnRank(const Program& program, SettingsTable& table, int ranks, comm::Session& session,
                       int* stopped) {
  Settings& settings = program.settings;
  PLAIT_RETURN_IF_ERROR(AgreeOnSettings(session.world(), table.Values()));
  PLAIT_ASSIGN_OR_RETURN(const device::DevicePlan device,
                         device::SelectDevice(settings.device_request(), session.world()));
  Console console(session.world().rank() == 0);
  const BarScope preparing(console, "preparing");
  PLAIT_ASSIGN_OR_RETURN(const base::Log log, MakeLog(session.world().rank(), console));
  if (!device.warning.empty()) log.Warning(device.warning);
  if (table.Given("batch_size") && table.Given("global_batch_size") && settings.global_batch_size > 0) {
    log.Warning(absl::StrCat("--batch-size=", settings.batch_size,
                             " has no effect beside --global-batch-size=", settings.global_batch_size));
  }
  PLAIT_ASSIGN_OR_RETURN(
      CheckpointPlace place,
      OpenCheckpointPlace(program.name, settings, table, session.world(), comm::DetectJob().job_id,
                          [&log](const std::string& line) { log.Info(line); }));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<comm::MeshAxis> axes, settings.Axes(ranks));
  const comm::Communicator world =
      settings.dry_run ? CountedWorld(settings, axes, /*rank=*/0) : session.world();
  settings.Complete(axes);
  PLAIT_RETURN_IF_ERROR(settings.CheckGiven(table));
  PLAIT_RETURN_IF_ERROR(settings.Check(axes));
  if (place.checkpoint.has_value()) {
    const parallel::Checkpoint::Totals held = place.checkpoint->TotalsOf("model");
    const absl::Status fits = models::CheckHeld(settings.Sizes(), {held.tensors, held.elements});
    PLAIT_RETURN_IF_ERROR(base::Prefixed(fits, "--resume: " + place.checkpoint->folder()));
  }
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh, comm::DeviceMesh::Create(world, axes));
  PLAIT_ASSIGN_OR_RETURN(const comm::Communicator data,
                         RanksAlong(mesh, {"dp_replicate", "dp_shard"}, "data"));
  PLAIT_ASSIGN_OR_RETURN(const comm::Communicator losses,
                         RanksAlong(mesh, {"pp", "dp_replicate", "dp_shard", "cp"}, "losses"));
  Run run = {.program = program.name,
             .settings = settings,
             .table = table,
             .settings_line =
                 [&] { return base::Settings(table.Usage(program.name, program.summary, program.examples)); },
             .flag_file = FlagFile(program.name, table, settings.DerivedFlags(axes), session.world().size(),
                                   place.checkpoint.has_value()),
             .session = session,
             .world = world,
             .mesh = mesh,
             .data = data,
             .losses = losses,
             .device = device.device(),
             .log = log,
             .console = console,
             .environment = {.job = comm::DetectJob(), .device = {}, .utf8 = comm::LocaleIsUtf8()},
             .checkpoint = std::move(place.checkpoint),
             .polls_stop_signals = PollsStopSignals(settings)};
  PLAIT_RETURN_IF_ERROR(TakeSizes(program, axes, run));
  if (program.config_block && !settings.dry_run) ReportStart(program, run);
  PLAIT_RETURN_IF_ERROR(program.run(run));
  *stopped = run.stopped;
  return absl::OkStatus();
}

}  // namespace

int StoppedBy(int signal) { return 128 + (signal == SIGINT ? SIGINT : SIGTERM); }

int RunProgram(int argc, char** argv, const Program& program) {
  const comm::Launcher launcher = comm::DetectLauncher();
  const int rank = launcher.starts_mpi() ? launcher.rank : 0;
  const auto fail = [&](const absl::Status& status, int code) {
    if (rank == 0) {
      std::fprintf(stderr, "%s: %s\n", program.name.c_str(), std::string(status.message()).c_str());
    }
    return code;
  };
  SettingsTable table;
  program.settings.Bind(table);
  const base::ToolUsage usage = table.Usage(program.name, program.summary, program.examples);
  base::ParseFlagsOrExit(argc, argv, usage, rank);
  const absl::Status chosen = program.settings.ChooseDefaults(table);
  if (!chosen.ok()) return fail(chosen, kUsageError);
  const absl::StatusOr<int> ranks = CheckedRanks(program.settings, table, launcher);
  if (!ranks.ok()) return fail(ranks.status(), kUsageError);
  const bool starts_ranks = !launcher.starts_mpi() && *ranks > 1 && !program.settings.dry_run;
  const bool saves = PollsStopSignals(program.settings);
  if (starts_ranks) return comm::RunOnRanks(*ranks, argv, saves ? program.settings.grace : kGraceSeconds);
  base::KeepFreedMemory();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond ulimit -f is an error, not the end of a rank
  int stopped = 0;
  const comm::SessionOptions options = {
      .start_timeout_seconds = std::max(kStartSeconds, program.settings.timeout),
      .setup_timeout_seconds =
          std::max(comm::SessionOptions().setup_timeout_seconds, program.settings.timeout),
      .step_timeout_seconds = program.settings.timeout,
      .stop_on_signals = saves,
      .device_backend = comm::NcclBackendFactory()};
  const int code = comm::RunMain(argc, argv, options, [&](comm::Session& session) {
    return RunOnRank(program, table, *ranks, session, &stopped);
  });
  return code == 0 ? stopped : code;
}

}  // namespace plait::training
