#include "tools/dist_test/run.h"

#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/timer_report.h"
#include "comm/device_mesh.h"
#include "comm/launch/dist_info.h"
#include "comm/long_barrier.h"
#include "data/hdf5/atomic_file.h"
#include "tools/collectives_sweep/run_sweep.h"
#include "tools/dist_test/fault.h"
#include "tools/dist_test/outputs.h"
#include "tools/dist_test/replica_check.h"
#include "tools/dist_test/step_summary.h"
#include "tools/dist_test/workload.h"
#include "tools/training/agreement.h"
#include "tools/training/startup_report.h"

namespace plait::dist_test {
namespace {

using base::Profile;
using training::RunEnvironment;

// Where gradients are reduced: the first axis with several ranks.
const comm::Communicator& GradientAxis(const comm::DeviceMesh& mesh) {
  for (const comm::MeshAxis& axis : mesh.axes()) {
    if (axis.size > 1) return mesh.axis(axis.name);
  }
  return mesh.world();
}

// Collective.
RunEnvironment ReportStart(const Config& config, const device::DevicePlan& device,
                           const comm::DeviceMesh& mesh, const base::Log& log) {
  RunEnvironment environment = training::ReportStartup(
      mesh, {.strategy = absl::AsciiStrToUpper(Name(config.strategy)), .gpu = device.gpu}, log);
  if (config.collectives) return environment;
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"warmup", absl::StrCat(config.warmup)},
      {"log_freq", absl::StrCat(config.log_freq)},
      {"batch_size", absl::StrCat(config.batch_size)},
      {"input_size", absl::StrCat(config.input_size)},
      {"output_size", absl::StrCat(config.output_size)},
      {"dtype", config.dtype},
      {"device", environment.device.kind},
      {"world_size", absl::StrCat(environment.job.size)},
      {"train_iters", absl::StrCat(config.train_iters)}};
  log.Info("\n\n" + comm::BulletBlock("CONFIG", entries, environment.utf8));
  return environment;
}

data::RunFacts FactsOf(const Config& config, const RunEnvironment& environment) {
  return training::FactsOf("test_dist", config.seed, config.settings_line, environment);
}

// --collectives: a table on standard output, sweep.h5 and plots in the output directory.
absl::Status RunCollectives(const Config& config, const RunEnvironment& environment, comm::Session& session,
                            const base::Log& log) {
  PLAIT_ASSIGN_OR_RETURN(const training::OutputFolder folder,
                         training::OpenOutputFolder("test_dist", config.outputs, session.world()));
  session.EnterSteps();
  collectives_sweep::SweepOptions options;
  options.smallest_bytes = config.smallest_bytes;
  options.largest_bytes = config.largest_bytes;
  options.factor = config.size_factor;
  options.file = folder.path + "/sweep.h5";
  options.plots_folder = config.plots ? folder.path : "";
  options.show_plots = config.plots;
  PLAIT_RETURN_IF_ERROR(collectives_sweep::RunSweep(
      session.world(), options, [](const std::string& line) { std::puts(line.c_str()); },
      data::RunAttributes(FactsOf(config, environment))));
  log.Info(absl::StrCat("sweep saved in ", options.file));
  return absl::OkStatus();
}

class Training {
 public:
  Training(const Config& config, const RunEnvironment& environment, comm::Session& session, Profile& profile,
           const base::Log& log, const comm::DeviceMesh& mesh, at::Device device)
      : config_(config),
        session_(session),
        world_(session.world()),
        profile_(profile),
        log_(log),
        mesh_(mesh),
        device_(device),
        environment_(environment) {}

  absl::Status Run();

 private:
  absl::Status Steps(Workload& workload, Outputs& outputs);
  absl::Status Step(int iter, Workload& workload, Outputs& outputs);
  void Trace(data::Trace* trace, int iter, const StepTimes& times);
  void AddTimes(const StepTimes& times);
  absl::Status CompareReplicas(Workload& workload);
  absl::Status Conclude(Outputs& outputs);

  const Config& config_;
  comm::Session& session_;
  const comm::Communicator& world_;
  Profile& profile_;
  const base::Log& log_;
  const comm::DeviceMesh& mesh_;
  at::Device device_;
  const RunEnvironment& environment_;
  base::TimerSet timers_;
};

void Training::Trace(data::Trace* trace, int iter, const StepTimes& times) {
  if (trace == nullptr) return;
  const auto ns = [](double seconds) { return static_cast<std::int64_t>(1e9 * seconds); };
  trace->Add("forward", 0, ns(times.begin_seconds), ns(times.forward_end_seconds));
  trace->Add("backward", 0, ns(times.forward_end_seconds), ns(times.backward_end_seconds));
  trace->Add("optimizer", 0, ns(times.backward_end_seconds), ns(times.end_seconds));
  trace->Add("step", 0, ns(times.begin_seconds), ns(times.end_seconds), {.step = iter});
}

void Training::AddTimes(const StepTimes& times) {
  timers_.Get("step").Add(times.dt());
  timers_.Get("step::forward and loss").Add(times.dtf());
  timers_.Get("step::backward and reductions").Add(times.dtb() - times.optimizer());
  timers_.Get("step::optimizer").Add(times.optimizer());
}

absl::Status Training::Step(int iter, Workload& workload, Outputs& outputs) {
  world_.Barrier();
  InjectFault(config_, iter, world_, GradientAxis(mesh_));
  const StepTimes times = workload.Step();
  if (iter <= config_.warmup) {
    outputs.SkipTraffic(mesh_);
    return absl::OkStatus();
  }
  const Profile::Scope scope(profile_, "recording");
  AddTimes(times);
  Trace(outputs.files().trace().trace(), iter, times);
  const StepSummary step = SummarizeStep(world_, iter, config_.batch_size, times);
  if (iter % config_.log_freq == 0) log_.Info(StepLine(step));
  return outputs.Record(step, mesh_);
}

absl::Status Training::Steps(Workload& workload, Outputs& outputs) {
  const comm::PhaseScope phase(world_, "training");
  session_.EnterSteps();
  for (int iter = 0; iter < config_.train_iters; ++iter) PLAIT_RETURN_IF_ERROR(Step(iter, workload, outputs));
  return absl::OkStatus();
}

absl::Status Training::CompareReplicas(Workload& workload) {
  const Profile::Scope scope(profile_, "comparison of replicas");
  ReplicaCheck check(world_);
  workload.VisitParameters(
      [&](const std::string& name, const at::Tensor& parameter) { check.Compare(name, parameter); });
  PLAIT_RETURN_IF_ERROR(check.Finish());
  log_.Info(absl::StrCat("parameters are bitwise identical on all ", world_.size(), " ranks"));
  return absl::OkStatus();
}

absl::Status Training::Conclude(Outputs& outputs) {
  const training::RunOutputs& files = outputs.files();
  if (world_.size() > 1) {
    const double in_flight = outputs.in_flight_seconds(), exposed = outputs.exposed_seconds();
    log_.Info(absl::StrFormat("%s: %.6f s in flight per step, %.6f s of it exposed: %.0f %% overlap",
                              TrafficName(mesh_), in_flight, exposed,
                              in_flight > 0 ? 100 * (1 - exposed / in_flight) : 0.0));
  }
  log_.Info(absl::StrCat("[timers]:", base::TimerTable(timers_, world_.rank())));
  if (world_.rank() == 0 && config_.plots) {
    const Profile::Scope scope(profile_, "plots");
    outputs.Draw(log_);
  }
  // Drawing has limits of its own (data/plot), which may be longer than --timeout.
  if (config_.plots) comm::LongBarrier(world_, std::numeric_limits<double>::infinity());
  const std::string tree = absl::StrFormat("Duration: %.3f     CPU time: %.3f\n", profile_.wall_seconds(),
                                           profile_.processor_seconds()) +
                           profile_.Tree({.utf8 = environment_.utf8});
  log_.Info("\n" + tree);
  absl::Status written =
      world_.rank() == 0 ? data::WriteWholeFile(files.folder() + "/profile.txt", tree) : absl::OkStatus();
  log_.Info(absl::StrCat("history saved in ", files.history_path()));
  if (!files.trace_path().empty()) {
    log_.Info(absl::StrCat("trace saved in ", files.trace_path(), ": open it in ui.perfetto.dev"));
  }
  log_.Info(absl::StrFormat("[%d] runtime=%.6fs", world_.rank(), profile_.wall_seconds()));
  return written;
}

absl::Status Training::Run() {
  absl::StatusOr<Outputs> outputs = [&] {
    const Profile::Scope scope(profile_, "outputs");
    return Outputs::Open(config_, FactsOf(config_, environment_), world_);
  }();
  PLAIT_RETURN_IF_ERROR(outputs.status());
  std::unique_ptr<Workload> workload;
  {
    const Profile::Scope scope(profile_, "network and optimizer");
    PLAIT_ASSIGN_OR_RETURN(workload, Workload::Create(config_, mesh_, device_, profile_));
  }
  log_.Info(absl::StrCat("model=", workload->Description()));
  log_.Info(absl::StrCat(workload->ParameterCount(), " parameters; samples are random numbers"));
  PLAIT_RETURN_IF_ERROR(Steps(*workload, *outputs));
  PLAIT_RETURN_IF_ERROR(CompareReplicas(*workload));
  {
    const Profile::Scope scope(profile_, "files");
    PLAIT_RETURN_IF_ERROR(outputs->files().Close());
  }
  return Conclude(*outputs);
}

}  // namespace

absl::Status Run(const Config& config, comm::Session& session, Profile& profile) {
  const comm::Communicator& world = session.world();
  PLAIT_RETURN_IF_ERROR(training::AgreeOnSettings(world, config.values));
  if (config.fault != "none" && config.fault_rank >= world.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--fault-rank=", config.fault_rank, ": there are ",
                                                   world.size(), " ranks; expected 0 to ", world.size() - 1));
  }
  PLAIT_ASSIGN_OR_RETURN(const base::Log log,
                         base::MakeLog({.rank = world.rank(), .stream = base::LogStream::kStandardOutput}));
  if (config.bucket_bytes != 0) {
    log.Warning("--bucket-bytes has no effect any more: gradients are reduced layer by layer; leave it out");
  }
  PLAIT_ASSIGN_OR_RETURN(const device::DevicePlan device, device::SelectDevice(config.device, world));
  if (!device.warning.empty()) log.Warning(device.warning);
  PLAIT_ASSIGN_OR_RETURN(std::vector<comm::MeshAxis> axes, MeshAxes(config, world.size()));
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh, comm::DeviceMesh::Create(world, std::move(axes)));
  const RunEnvironment environment = ReportStart(config, device, mesh, log);
  if (config.collectives) return RunCollectives(config, environment, session, log);
  return Training(config, environment, session, profile, log, mesh, device.device()).Run();
}

}  // namespace plait::dist_test
