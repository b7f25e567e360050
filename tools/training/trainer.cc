#include "tools/training/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/path.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "comm/flight_recorder.h"
#include "comm/gathered_text.h"
#include "comm/long_barrier.h"
#include "data/hdf5/atomic_file.h"
#include "tools/training/agreement.h"
#include "tools/training/resume.h"
#include "tools/training/step_trace.h"

namespace plait::training {
namespace {

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// In place of an older one, which may be the --flagfile of this run.
absl::Status WriteFlagFile(const std::string& folder, const std::string& lines) {
  return base::Prefixed(data::WriteWholeFile(folder + "/settings.flags", lines), "--outputs");
}

// A limit set by the user must be enforceable; the host's own limit may be unknown.
absl::Status NotChecked(const Settings& settings, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("--memory-limit=", settings.memory_limit,
                                                    ": cannot be checked: ", why,
                                                    "; leave it out to run without a limit"));
}

}  // namespace

struct Trainer::Passes {
  Passes(at::Device device, bool exact) : sums(2, device, exact) {}
  DeviceSums sums;  // of losses and of targets
  double loss = 0;  // mean, after the last one
  std::int64_t count = 0, nominal_count = 0;
  double forward_seconds = 0;
};

Trainer::Trainer(Run& run, TrainingTask& task)
    : run_(run),
      task_(task),
      settings_(run.settings),
      traffic_(run.mesh, run.settings.expert_ranks(), run.settings.parsed_strategy()),
      solver_control_(run.settings.lp, run.world, run.environment.job.local_size),
      scaler_(parallel::LossScalerOptions{.enabled = run.settings.dtype == "float16"}),
      step_(task.first_step()) {
  task.trainer_ = this;
  if (!run.polls_stop_signals && settings_.checkpoint_dir.empty()) return;
  policy_.emplace(run.world, parallel::SavePolicyOptions{.every_steps = settings_.checkpoint_interval});
  if (settings_.checkpoint_dir.empty()) return;
  saver_.emplace(run.world, base::FromUser(settings_.checkpoint_dir),
                 SaveOptionsOf(settings_, run.checkpoint));
}

absl::Status Trainer::Prepare() {
  run_.console.ReplaceBar("preparing");
  if (settings_.dry_run) return DryRunOnly();
  trained_ = task_.model();
  if (settings_.eval_only && !run_.checkpoint.has_value() && !settings_.has_initial_model()) {
    return absl::NotFoundError(
        "--eval-only: there is no checkpoint; expected --resume=DIR with one, or, of programs that have it, "
        "--init-from=DIR");
  }
  NamedValues facts = Facts();
  facts.merge(task_.shared_facts());
  PLAIT_RETURN_IF_ERROR(AgreeOnFacts(run_.world, facts));
  expert_load_ = ExpertLoad(*trained_.model);
  if (!run_.device.is_cpu()) {
    run_.log.Info("Times of a step's parts are those of enqueuing kernels.");
  }
  if (run_.checkpoint.has_value()) {
    PLAIT_RETURN_IF_ERROR(base::Prefixed(CompareFacts(*run_.checkpoint, Facts()), "--resume"));
  }
  PLAIT_RETURN_IF_ERROR(SplitLayers(settings_, run_.mesh, trained_));
  PLAIT_RETURN_IF_ERROR(ReportPipeline());
  PLAIT_RETURN_IF_ERROR(PlanMemory());
  PLAIT_ASSIGN_OR_RETURN(model_, ShardedModel::Create(settings_, run_.mesh, run_.device, trained_));
  solver_control_.Begin(*model_);
  if (run_.checkpoint.has_value()) PLAIT_RETURN_IF_ERROR(Restore());
  const absl::Status opened = OpenOutputs();
  if (!opened.ok()) model_->WaitForParameters();
  return opened;
}

NamedValues Trainer::Facts() const {
  NamedValues facts = task_.facts();
  facts[kGlobalBatch] = absl::StrCat(settings_.GlobalBatch(run_.data.size()));
  return facts;
}

absl::Status Trainer::ReportPipeline() {
  PLAIT_ASSIGN_OR_RETURN(const PipelinePlan plan, PlanPipeline(settings_, run_.mesh, *trained_.model));
  if (plan.stages.size() == 1) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::string text, TextOf(plan));
  run_.log.Info(text);
  const parallel::Schedule& schedule = plan.schedule;
  if (schedule.micro_batches >= schedule.ranks) return absl::OkStatus();
  run_.log.Warning(absl::StrCat("--gradient-accumulation-steps=", schedule.micro_batches,
                                ": fewer micro-batches than the ", schedule.ranks,
                                " ranks of pp, so that some are always idle"));
  return absl::OkStatus();
}

absl::Status Trainer::PlanMemory() {
  const MakeDryRunModel make = task_.dry_run_model();
  if (!make && trained_.activation_bytes_per_sample < 0) {
    return settings_.has_memory_limit() ? NotChecked(settings_, "this program has no memory plan")
                                        : absl::OkStatus();
  }
  absl::StatusOr<parallel::MemoryPlan> planned;
  if (make) {
    planned = PlanByDryRun(settings_, run_.mesh, run_.device, trained_, make);
  } else {
    PLAIT_ASSIGN_OR_RETURN(const parallel::MemoryPlanRequest request,
                           MemoryRequest(settings_, run_.mesh, run_.device, trained_));
    planned = parallel::PlanMemory(request);
  }
  const absl::Status agreed = run_.world.Agree(planned.status());
  if (absl::IsUnimplemented(agreed)) {
    if (settings_.has_memory_limit()) return NotChecked(settings_, agreed.message());
    run_.log.Warning(absl::StrCat("no memory plan, and no check that the run fits: ", agreed.message()));
    return absl::OkStatus();
  }
  PLAIT_RETURN_IF_ERROR(agreed);
  const parallel::MemoryPlan& plan = *planned;
  run_.log.Info("\n" + parallel::MemoryPlanText(plan));
  const int ranks_on_host = run_.environment.job.local_size;
  return run_.world.Agree(
      parallel::CheckFits(plan, settings_.memory(ranks_on_host, run_.device), ranks_on_host));
}

absl::Status Trainer::DryRunOnly() {
  const MakeDryRunModel make = task_.dry_run_model();
  if (!make) return absl::UnimplementedError("--dry-run: this program has none");
  PLAIT_ASSIGN_OR_RETURN(const DryRunResult result, DryRun(settings_, run_.mesh.axes(), make));
  run_.log.Info("\n" + DryRunText(result));
  const parallel::NodeMemory limit = settings_.memory(/*ranks_on_host=*/1, run_.device);
  return settings_.has_memory_limit() ? CheckFits(result, limit) : absl::OkStatus();
}

std::vector<Recorded> Trainer::Metrics() const {
  std::vector<Recorded> metrics = {{data::Count("step", "steps done")}};
  for (Recorded& metric : task_.metrics()) metrics.push_back(std::move(metric));
  for (Recorded& metric : traffic_.metrics()) metrics.push_back(std::move(metric));
  for (Recorded& metric : expert_load_.metrics()) metrics.push_back(std::move(metric));
  if (settings_.lp.Solves(run_.mesh.Has("lp") ? run_.mesh.axis("lp").size() : 1)) {
    for (Recorded& metric : SolverControl::metrics()) metrics.push_back(std::move(metric));
  }
  return metrics;
}

absl::Status Trainer::OpenOutputs() {
  const Settings& s = settings_;
  const bool folder = task_.always_writes_outputs() || !s.outputs.empty() || s.plots || s.trace;
  if (s.eval_only || (!folder && s.history.empty())) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(
      RunOutputs outputs,
      RunOutputs::Open({.program = run_.program,
                        .outputs = base::FromUser(s.outputs),
                        .folder = folder,
                        .history = base::FromUser(s.history),
                        .history_name = s.history_name,
                        .trace = s.trace,
                        .metrics = Metrics(),
                        .gather_every = task_.gather_every(),
                        .resumed_draws = history_draws_,
                        .steps_done = step_ == task_.first_step() ? 0 : step_,
                        .begins_again = history_draws_ < 0 && !s.resume.empty(),
                        .say = [this](const std::string& line) { run_.log.Info(line); }},
                       FactsOf(run_.program, s.seed, run_.settings_line(), run_.environment, task_.data()),
                       run_.world));
  outputs_.emplace(std::move(outputs));
  outputs_->trace().SetUnits(model_->UnitNames());
  if (!folder) return absl::OkStatus();
  const bool writes = run_.world.rank() == 0;
  return run_.world.Agree(writes ? WriteFlagFile(outputs_->folder(), run_.flag_file) : absl::OkStatus());
}

absl::Status Trainer::EvaluateOnly() {
  const absl::Status status = task_.EvaluateOnly();
  model_->WaitForParameters();
  return status.ok() ? model_->status() : status;  // of parameters that could not be read
}

absl::Status Trainer::Train() {
  run_.session.EnterSteps();
  if (settings_.eval_only) return EvaluateOnly();
  absl::Status status = step_ == task_.first_step() ? task_.BeforeFirstStep() : absl::OkStatus();
  const TaskProgress progress = task_.progress();
  run_.console.StartBar(progress.label, progress.total, progress.done);
  if (status.ok()) status = Steps();
  run_.console.StopBar();
  run_.console.ReplaceBar("finishing");
  if (passes_ns_ > 0 && model_->stages() > 1) {
    run_.log.Info(absl::StrFormat("pipeline: the first rank waited in %.0f %% of its passes' time",
                                  100.0 * static_cast<double>(idle_ns_) / static_cast<double>(passes_ns_)));
  }
  // Also after an error, which is the same on all ranks: collectives in flight must complete, and so must a checkpoint
  // that is being written.
  model_->WaitForParameters();
  if (saver_.has_value()) {
    const absl::Status saved = LogSaved(saver_->Finish());
    if (status.ok()) status = saved;
  }
  // The last steps tell why; not after a failure of the file itself, which is returned again.
  if (!status.ok() && outputs_.has_value()) outputs_->history().Flush().IgnoreError();
  PLAIT_RETURN_IF_ERROR(status);
  return model_->status();
}

void Trainer::LogSolverLine() {
  if (const std::string& line = solver_control_.Line(); !line.empty()) run_.log.Info(line);
}

absl::Status Trainer::Steps() {
  const comm::PhaseScope phase(run_.world, "training");
  while (!task_.done() && !run_.stopped) {
    ReportProgress();
    PLAIT_ASSIGN_OR_RETURN(const StepReport report, Step());
    if (outputs_.has_value()) TraceStep(report, timeline_, run_.world.rank() == 0, outputs_->trace());
    LogSolverLine();
    PLAIT_RETURN_IF_ERROR(PollSave());  // before an evaluation, which may take long
    const bool evaluates = task_.EvaluationIsDue();
    PLAIT_RETURN_IF_ERROR(task_.EndStep(report, evaluates));
    PLAIT_RETURN_IF_ERROR(SaveOrStop(evaluates));
  }
  return absl::OkStatus();
}

void Trainer::ReportProgress() {
  const TaskProgress progress = task_.progress();
  run_.console.SetLabel(progress.label);
  run_.console.Update(progress.done);
}

parallel::PipelineMicroBatch Trainer::NextMicroBatch(int k, Passes& passes) {
  MicroBatch micro = task_.Next(k);
  // The flight recorder may not keep the calls of a whole step.
  if (outputs_.has_value()) outputs_->trace().TakeCalls();
  // With --reproducible a leaf is named by its number among those of all ranks, which is the same on any mesh.
  const int leaf =
      settings_.reproducible ? run_.data.rank() * settings_.MicroBatches(run_.data.size()) + k : k;
  const std::uint64_t of_step =
      base::DeriveSeed(settings_.seed, "dropout", static_cast<std::uint64_t>(step_));
  micro.batch.random.seed = base::DeriveSeed(of_step, "micro-batch", static_cast<std::uint64_t>(leaf));
  passes.nominal_count = micro.nominal_count;
  return {.batch = model_->OnDevice(micro.batch),
          .loss_factor = scaler_.scale() / static_cast<double>(micro.nominal_count)};
}

Trainer::Passes Trainer::RunPasses() {
  Passes passes(run_.device, settings_.reproducible);
  parallel::PipelineStep done =
      solver_control_.RunMicroBatches(step_, [&](int k) { return NextMicroBatch(k, passes); });
  for (const models::LossSum& loss : done.losses) {
    passes.sums.Add(0, loss.sum);
    passes.sums.Add(1, loss.count);
  }
  for (const parallel::ActionTime& time : done.timeline) {
    const bool forward = time.action.kind == parallel::ActionKind::kForward;
    passes.forward_seconds += forward ? 1e-9 * static_cast<double>(time.end_ns - time.begin_ns) : 0;
  }
  passes.forward_seconds += 1e-9 * static_cast<double>(done.batch_ns);
  timeline_ = std::move(done.timeline);
  CountIdleTime();
  const std::vector<double> totals = passes.sums.Total(run_.losses);
  passes.count = static_cast<std::int64_t>(totals[1]);
  passes.loss = totals[0] / totals[1];
  return passes;
}

absl::StatusOr<StepReport> Trainer::Step() {
  traffic_.BeginStep();
  const double begin = NowSeconds();
  parallel::ShardedOptimizer& optimizer = model_->optimizer();
  optimizer.set_lr(task_.LearningRate());
  const Passes passes = RunPasses();
  PLAIT_RETURN_IF_ERROR(task_.CheckData());
  if (passes.count == 0) {
    return absl::InvalidArgumentError(absl::StrCat("step ", step_ + 1, " has no valid targets: all ",
                                                   passes.nominal_count,
                                                   " targets are ignored; expected more samples per step"));
  }
  if (!std::isfinite(passes.loss)) return NotFinite("loss", passes.loss, step_ + 1);
  const double backward_end = NowSeconds();
  const double true_share = static_cast<double>(passes.count) / static_cast<double>(passes.nominal_count);
  const parallel::StepResult result =
      model_->Step({.clip_norm = trained_.clip_norm, .loss_scale = scaler_.scale() * true_share});
  PLAIT_RETURN_IF_ERROR(base::Prefixed(result.status, "--offload"));
  if (result.skipped && !scaler_.can_back_off()) {
    return NotFinite("norm of the gradients", result.gradient_norm, step_ + 1);
  }
  scaler_.Update(result.skipped);
  ++step_;
  const double end = NowSeconds();
  StepReport report = {.step = step_,
                       .loss = passes.loss,
                       .count = passes.count,
                       .dt_seconds = end - begin,
                       .forward_seconds = passes.forward_seconds,
                       .backward_seconds = end - begin - passes.forward_seconds,
                       .optimizer_seconds = end - backward_end,
                       .learning_rate = optimizer.lr(),
                       .gradient_norm = result.gradient_norm,
                       .end_seconds = end};
  traffic_.EndStep();
  double slowest[1] = {report.dt_seconds};
  run_.world.AllReduce(comm::BufferOf(absl::MakeSpan(slowest)), comm::ReduceOp::kMax);
  report.slowest_seconds = slowest[0];
  return report;
}

// Collective: `value` is the same on every rank.
absl::Status Trainer::NotFinite(const char* what, double value, std::int64_t step) const {
  PLAIT_RETURN_IF_ERROR(model_->status());  // parameters that could not be read are NaN
  std::string tensor;
  for (const std::string& found : comm::GatherText(run_.world, model_->FirstNonFinite())) {
    if (tensor.empty()) tensor = found;
  }
  const std::string kept =
      settings_.checkpoint_dir.empty()
          ? ""
          : absl::StrCat("; the last good checkpoint stays in ", base::FromUser(settings_.checkpoint_dir));
  const bool half = at::elementSize(settings_.compute_type()) < 4;
  return absl::OutOfRangeError(absl::StrFormat(
      "the %s is %g in step %d, %s; first non-finite tensor: %s%s; try a smaller learning rate%s", what,
      value, step, task_.Position(), tensor.empty() ? "none, but the loss" : tensor, kept,
      half ? ", or --dtype=float32" : ""));
}

absl::Status Trainer::CheckEvaluated(const char* what, double value) const {
  return std::isfinite(value) ? absl::OkStatus() : NotFinite(what, value, step_);
}

// Reported for the first rank of pp, whose passes span the whole step.
void Trainer::CountIdleTime() {
  if (timeline_.empty()) return;
  for (const parallel::ActionTime& time : timeline_) idle_ns_ += time.waited_ns;
  passes_ns_ += timeline_.back().end_ns - timeline_.front().begin_ns;
}

absl::Status Trainer::Record(absl::Span<const data::Scalar> scalars) {
  if (!outputs_.has_value()) return absl::OkStatus();
  std::vector<data::Scalar> all(scalars.begin(), scalars.end());
  const bool has_step = std::any_of(all.begin(), all.end(), [](const auto& s) { return s.name == "step"; });
  if (!has_step) all.push_back({"step", static_cast<double>(step_)});
  traffic_.TakeScalars(all);
  std::vector<data::Vector> vectors;
  expert_load_.TakeStep(all, vectors);
  solver_control_.TakeStep(all);
  return outputs_->history().Append(all, vectors);
}

std::vector<double> Trainer::Evaluate(const std::string& label, std::int64_t count, std::size_t sums,
                                      const EvaluateOne& one, bool by_all_ranks) {
  const comm::PhaseScope phase(run_.world, "evaluation");
  const at::NoGradGuard no_grad;
  DeviceSums mine(sums, run_.device, settings_.reproducible);
  model_->model().SetTraining(false);
  const BarScope bar(run_.console, label, count);
  for (std::int64_t batch = 0; batch < count; ++batch) {
    one(batch, mine);
    if (outputs_.has_value()) outputs_->trace().TakeCalls();
    if (by_all_ranks && saved_.ok()) saved_ = PollSave();
    run_.console.Update(batch + 1);
  }
  model_->model().SetTraining(true);
  return mine.Total(run_.losses);
}

absl::Status Trainer::Conclude() {
  if (!outputs_.has_value()) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(outputs_->Close());
  if (run_.world.rank() == 0 && settings_.plots && outputs_->history().draws() > 0) {
    HistoryPlots plots = task_.plots();
    plots.heat_maps = expert_load_.heat_maps();
    outputs_->Draw(plots, run_.log, [this](const std::string& text) { run_.console.Print(text); });
  }
  // Drawing has limits of its own (data/plot), which may be longer than --timeout.
  if (settings_.plots) comm::LongBarrier(run_.world, std::numeric_limits<double>::infinity());
  run_.log.Info(absl::StrCat("history saved in ", outputs_->history_path()));
  if (!outputs_->trace_path().empty()) {
    run_.log.Info(absl::StrCat("trace saved in ", outputs_->trace_path(), ": open it in ui.perfetto.dev"));
    if (const std::int64_t lost = outputs_->trace().dropped(); lost > 0) {
      run_.log.Warning(absl::StrCat("the trace is missing ", lost, " events of all ranks (buffer full)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace plait::training
