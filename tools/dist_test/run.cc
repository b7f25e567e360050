#include "tools/dist_test/run.h"

#include <ATen/Parallel.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/timer_report.h"
#include "comm/device_mesh.h"
#include "parallel/replicas.h"
#include "tools/dist_test/collectives.h"
#include "tools/dist_test/fault.h"
#include "tools/dist_test/introduction.h"
#include "tools/dist_test/outputs.h"
#include "tools/dist_test/step_summary.h"
#include "tools/dist_test/workload.h"

namespace plait::dist_test {
namespace {

using base::Profile;

class Training {
 public:
  Training(const Config& config, comm::Session& session, Profile& profile, base::Log log,
           comm::DeviceMesh mesh)
      : config_(config),
        session_(session),
        world_(session.world()),
        profile_(profile),
        log_(std::move(log)),
        mesh_(std::move(mesh)),
        dp_(mesh_.axis("dp")),
        place_(Introduce(config, mesh_, log_)) {}

  absl::Status Run();

 private:
  absl::Status Steps(Workload& workload, Outputs& outputs);
  absl::Status Step(int iter, Workload& workload, Outputs& outputs);
  void Trace(data::Trace* trace, int iter, const StepTimes& times);
  void AddTimes(const StepTimes& times);
  absl::Status CompareReplicas(const Workload& workload);
  absl::Status Conclude(const Outputs& outputs);

  const Config& config_;
  comm::Session& session_;
  const comm::Communicator& world_;
  Profile& profile_;
  base::Log log_;
  comm::DeviceMesh mesh_;
  const comm::Communicator& dp_;
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
  timers_.Get("step::backward and all-reduce").Add(times.dtb() - times.optimizer());
  timers_.Get("step::optimizer, last all-reduces").Add(times.optimizer());
}

absl::Status Training::Step(int iter, Workload& workload, Outputs& outputs) {
  world_.Barrier();
  StrikeFault(config_, iter, dp_);
  const StepTimes times = workload.Step();
  if (iter <= config_.warmup) {
    outputs.PassOver(dp_);
    return absl::OkStatus();
  }
  const Profile::Scope scope(profile_, "recording");
  AddTimes(times);
  Trace(outputs.trace(), iter, times);
  const StepSummary step = SummariseStep(world_, iter, config_.batch_size, times);
  if (iter % config_.log_freq == 0) log_.Info(StepLine(step));
  return outputs.Record(step, times, dp_);
}

absl::Status Training::Steps(Workload& workload, Outputs& outputs) {
  const comm::PhaseScope phase(world_, "training");
  session_.EnterSteps();
  for (int iter = 0; iter < config_.train_iters; ++iter) PLAIT_RETURN_IF_ERROR(Step(iter, workload, outputs));
  return absl::OkStatus();
}

absl::Status Training::CompareReplicas(const Workload& workload) {
  const Profile::Scope scope(profile_, "comparison of replicas");
  const parallel::Difference difference = parallel::FirstDifference(dp_, workload.parameters());
  if (difference.rank >= 0) {
    return absl::DataLossError(absl::StrCat("parameters are not the same on all ranks: rank ",
                                            difference.rank, " differs from rank 0, first in tensor ",
                                            difference.tensor, "; expected the same bits after ",
                                            config_.train_iters, " steps. Run doctor on its host"));
  }
  log_.Info(absl::StrCat("parameters are the same bits on all ", world_.size(), " ranks"));
  return absl::OkStatus();
}

absl::Status Training::Conclude(const Outputs& outputs) {
  if (dp_.size() > 1) {
    const double in_flight = outputs.in_flight_seconds(), exposed = outputs.exposed_seconds();
    log_.Info(
        absl::StrFormat("all-reduce[dp]: %.6f s in flight per step, %.6f s of it exposed: %.0f %% overlap",
                        in_flight, exposed, in_flight > 0 ? 100 * (1 - exposed / in_flight) : 0.0));
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
    workload = std::make_unique<Workload>(config_, dp_, at::Device(place_.device.id), profile_);
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
  at::set_num_threads(1);
  const comm::Communicator& world = session.world();
  if (config.fault != FaultKind::kNone && config.fault_rank >= world.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--fault-rank=", config.fault_rank, ": there are ",
                                                   world.size(), " ranks; expected 0 to ", world.size() - 1));
  }
  PLAIT_ASSIGN_OR_RETURN(base::Log log,
                         base::MakeLog({.rank = world.rank(), .stream = base::LogStream::kStandardOutput}));
  PLAIT_ASSIGN_OR_RETURN(comm::DeviceMesh mesh, comm::DeviceMesh::Create(world, {{"dp", world.size()}}));
  if (config.collectives) return RunCollectives(config, session, mesh, log);
  return Training(config, session, profile, std::move(log), std::move(mesh)).Run();
}

}  // namespace plait::dist_test
