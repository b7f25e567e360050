#include "tools/dist_test/run.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/timer_report.h"
#include "comm/device_mesh.h"
#include "tools/dist_test/collectives.h"
#include "tools/dist_test/fault.h"
#include "tools/dist_test/outputs.h"
#include "tools/dist_test/replica_check.h"
#include "tools/dist_test/startup_report.h"
#include "tools/dist_test/step_summary.h"
#include "tools/dist_test/workload.h"

namespace plait::dist_test {
namespace {

using base::Profile;

// Where gradients are reduced: the first axis with several ranks.
const comm::Communicator& GradientAxis(const comm::DeviceMesh& mesh) {
  for (const comm::MeshAxis& axis : mesh.axes()) {
    if (axis.size > 1) return mesh.axis(axis.name);
  }
  return mesh.world();
}

class Training {
 public:
  Training(const Config& config, comm::Session& session, Profile& profile, base::Log log,
           comm::DeviceMesh mesh, const device::DevicePlan& device)
      : config_(config),
        session_(session),
        world_(session.world()),
        profile_(profile),
        log_(std::move(log)),
        mesh_(std::move(mesh)),
        device_(device.device()),
        place_(Introduce(config, device, mesh_, log_)) {}

  absl::Status Run();

 private:
  absl::Status Steps(Workload& workload, Outputs& outputs);
  absl::Status Step(int iter, Workload& workload, Outputs& outputs);
  void Trace(data::Trace* trace, int iter, const StepTimes& times);
  void AddTimes(const StepTimes& times);
  absl::Status CompareReplicas(Workload& workload);
  absl::Status Conclude(const Outputs& outputs);

  const Config& config_;
  comm::Session& session_;
  const comm::Communicator& world_;
  Profile& profile_;
  base::Log log_;
  comm::DeviceMesh mesh_;
  at::Device device_;
  Place place_;
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
  Trace(outputs.trace(), iter, times);
  const StepSummary step = SummarizeStep(world_, iter, config_.batch_size, times);
  if (iter % config_.log_freq == 0) log_.Info(StepLine(step));
  return outputs.Record(step, times, mesh_);
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

absl::Status Training::Conclude(const Outputs& outputs) {
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
  const std::string tree = absl::StrFormat("Duration: %.3f     CPU time: %.3f\n", profile_.wall_seconds(),
                                           profile_.processor_seconds()) +
                           profile_.Tree({.utf8 = place_.utf8});
  log_.Info("\n" + tree);
  absl::Status written = world_.rank() == 0 ? outputs.Write("profile.txt", tree) : absl::OkStatus();
  log_.Info(absl::StrCat("history saved in ", outputs.history_path()));
  if (!outputs.trace_path().empty()) {
    log_.Info(absl::StrCat("trace saved in ", outputs.trace_path(), ": open it in ui.perfetto.dev"));
  }
  log_.Info(absl::StrFormat("[%d] runtime=%.6fs", world_.rank(), profile_.wall_seconds()));
  return written;
}

absl::Status Training::Run() {
  absl::StatusOr<Outputs> outputs = [&] {
    const Profile::Scope scope(profile_, "outputs");
    return Outputs::Open(config_, FactsOf(config_, place_), world_);
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
    PLAIT_RETURN_IF_ERROR(outputs->Close());
  }
  return Conclude(*outputs);
}

}  // namespace

absl::Status Run(const Config& config, comm::Session& session, Profile& profile) {
  const comm::Communicator& world = session.world();
  if (config.fault != FaultKind::kNone && config.fault_rank >= world.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--fault-rank=", config.fault_rank, ": there are ",
                                                   world.size(), " ranks; expected 0 to ", world.size() - 1));
  }
  PLAIT_ASSIGN_OR_RETURN(base::Log log,
                         base::MakeLog({.rank = world.rank(), .stream = base::LogStream::kStandardOutput}));
  if (const std::string warning = RetiredFlags(); !warning.empty()) log.Warning(warning);
  PLAIT_ASSIGN_OR_RETURN(const device::DevicePlan device, device::SelectDevice(config.device, world));
  if (!device.warning.empty()) log.Warning(device.warning);
  PLAIT_ASSIGN_OR_RETURN(std::vector<comm::MeshAxis> axes, MeshAxes(config, world.size()));
  PLAIT_ASSIGN_OR_RETURN(comm::DeviceMesh mesh, comm::DeviceMesh::Create(world, std::move(axes)));
  if (config.collectives) return RunCollectives(config, device, session, mesh, log);
  return Training(config, session, profile, std::move(log), std::move(mesh), device).Run();
}

}  // namespace plait::dist_test
