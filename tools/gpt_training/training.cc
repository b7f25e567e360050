#include "tools/gpt_training/training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "comm/flight_recorder.h"
#include "comm/launch/gathered_text.h"
#include "parallel/training_state/training_state.h"
#include "tools/gpt_training/flops.h"
#include "tools/revision/revision.h"

namespace plait::gpt_training {
namespace {

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

parallel::LrSchedule ScheduleOf(const Config& c) {
  if (!c.decay_lr) return parallel::LrSchedule::Constant(c.learning_rate);
  return parallel::LrSchedule::WarmupCosine({.lr = c.learning_rate,
                                             .warmup_steps = c.warmup_iters,
                                             .decay_steps = std::max(c.lr_decay_iters, c.warmup_iters),
                                             .min_lr = c.min_lr});
}

SavedModel SavedModelOf(const Config& config, const Corpus& corpus, const gpt::GptOptions& options) {
  return {.options = options,
          .tokenizer = config.tokenizer,
          .tokenizer_digest = corpus.text.tokenizer_digest,
          .code_points = corpus.text.code_points};
}

// Different in every pass of every rank, the same in every run.
void SeedDropout(std::uint64_t seed, std::int64_t step, std::int64_t pass_of_rank) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::uint64_t of_step = base::DeriveSeed(seed, "dropout", static_cast<std::uint64_t>(step));
  generator.set_current_seed(base::DeriveSeed(of_step, "pass", static_cast<std::uint64_t>(pass_of_rank)));
}

}  // namespace

Training::Training(const RunParts& parts, BlockBatches batches, Evaluation evaluation)
    : parts_(parts),
      config_(parts.config),
      world_(parts.session.world()),
      batches_(std::move(batches)),
      evaluation_(std::move(evaluation)),
      schedule_(ScheduleOf(parts.config)),
      scaler_(parallel::LossScalerOptions{.enabled = parts.config.dtype == "float16"}),
      saved_model_(SavedModelOf(parts.config, parts.corpus, parts.sharded.model().options())),
      seed_(parts.config.seed),
      flops_per_token_(gpt::FlopsPerToken(parts.sharded.model().options(), parts.config.block_size)) {
  if (config_.checkpoint_dir.empty()) return;
  policy_.emplace(world_, parallel::SavePolicyOptions());
  saver_.emplace(world_, config_.checkpoint_dir, parallel::SaveOptions{.keep_last = config_.keep_last});
}

absl::StatusOr<std::unique_ptr<Training>> Training::Begin(const RunParts& parts) {
  const comm::Communicator& world = parts.session.world();
  absl::StatusOr<BlockBatches> batches =
      BlockBatches::Make({.tokens = parts.corpus.text.train,
                          .block_size = parts.config.block_size,
                          .batch_size = GlobalBatchSize(parts.config, world.size()),
                          .seed = parts.config.seed,
                          .rank = world.rank(),
                          .ranks = world.size()});
  PLAIT_RETURN_IF_ERROR(base::Prefixed(batches.status(), "--block-size"));
  PLAIT_ASSIGN_OR_RETURN(Evaluation evaluation, Evaluation::Make(parts.config, parts.corpus, world));
  std::unique_ptr<Training> training(new Training(parts, *std::move(batches), std::move(evaluation)));
  if (parts.resumed.has_value()) PLAIT_RETURN_IF_ERROR(training->Restore(*parts.resumed));
  return training;
}

absl::Status Training::Restore(const RunState& state) {
  PLAIT_RETURN_IF_ERROR(base::Prefixed(batches_.Restore(state.sampler), "--data"));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(scaler_.Restore(state.loss_scale), config_.resume));
  parts_.sharded.optimizer().set_steps(state.optimizer_steps);
  seed_ = state.seed;
  step_ = state.step;
  return absl::OkStatus();
}

absl::Status Training::Run() {
  const comm::PhaseScope phase(world_, "training");
  if (step_ == 0 && EvaluatesAt(config_, 0)) Evaluate(0);
  parts_.outputs.BeginSteps();
  parts_.console.StartBar("train", config_.max_iters);
  const absl::Status status = Steps();
  parts_.console.StopBar();
  // Also after an error, which all ranks have: messages that are on their way must arrive.
  parts_.sharded.engine().WaitForParameters();
  PLAIT_RETURN_IF_ERROR(status);
  // No step tells of a share that could not be read for the last evaluation.
  return world_.Agree(base::Prefixed(parts_.sharded.engine().status(), "--offload"));
}

absl::Status Training::Steps() {
  while (step_ < config_.max_iters && !stopped_) PLAIT_RETURN_IF_ERROR(Step());
  if (saver_.has_value()) return SaySaved(saver_->Finish());
  return absl::OkStatus();
}

absl::Status Training::Step() {
  double own_loss = 0;
  bool overflowed = false;
  PLAIT_ASSIGN_OR_RETURN(StepReport report, TimedStep(&own_loss, &overflowed));
  parts_.outputs.EndStep(report);
  ShareReport(own_loss, report);
  PLAIT_RETURN_IF_ERROR(CheckFinite(report, overflowed));
  const double evaluation_seconds = EvaluateIfDue(report);
  if (step_ % config_.log_interval == 0 || report.losses.has_value()) {
    parts_.log.Info(StepLine(report));
  }
  parts_.console.Update(step_);
  PLAIT_RETURN_IF_ERROR(parts_.outputs.Record(report, evaluation_seconds));
  return KeepOrStop();
}

void Training::RunPass(int micro_batch, Passes& passes) {
  const double begin = NowSeconds();
  SeedDropout(seed_, step_, std::int64_t{micro_batch} * world_.size() + world_.rank());
  const BlockBatch batch = batches_.Next();
  const double part = batch.share / config_.gradient_accumulation_steps;
  const at::Tensor loss = parts_.sharded.engine().Forward(
      [&] { return parts_.sharded.Loss(batch.inputs, batch.targets).mul(part); });
  passes.loss += loss.item<double>();
  const double middle = NowSeconds();
  parts_.sharded.engine().Backward(scaler_.scale() == 1 ? loss : loss.mul(scaler_.scale()),
                                   {.last = micro_batch + 1 == config_.gradient_accumulation_steps,
                                    .reduce_each = config_.reduce_each_micro_batch});
  passes.forward_seconds += middle - begin;
  passes.backward_seconds += NowSeconds() - middle;
}

Training::Passes Training::RunPasses() {
  Passes passes;
  for (int k = 0; k < config_.gradient_accumulation_steps; ++k) RunPass(k, passes);
  return passes;
}

absl::StatusOr<StepReport> Training::TimedStep(double* own_loss, bool* overflowed) {
  const double begin = NowSeconds();
  const Passes passes = RunPasses();
  const double backward_end = NowSeconds();
  parallel::ShardedOptimizer& optimizer = parts_.sharded.optimizer();
  optimizer.set_lr(schedule_.At(step_));
  const parallel::StepResult result =
      optimizer.Step({.clip_norm = config_.grad_clip, .loss_scale = scaler_.scale()});
  PLAIT_RETURN_IF_ERROR(base::Prefixed(result.status, "--offload"));
  scaler_.Update(result.skipped);
  const double end = NowSeconds();
  ++step_;
  *own_loss = passes.loss;
  *overflowed = result.skipped;
  const int ranks = world_.size();
  return StepReport{.step = step_,
                    .dt_seconds = end - begin,
                    .forward_seconds = passes.forward_seconds,
                    .backward_seconds = end - begin - passes.forward_seconds,
                    .optimizer_seconds = end - backward_end,
                    .samples = GlobalBatchSize(config_, ranks) * config_.gradient_accumulation_steps,
                    .tokens = TokensPerStep(config_, ranks),
                    .ranks = ranks,
                    .learning_rate = optimizer.lr(),
                    .gradient_norm = result.gradient_norm};
}

// The loss of the whole batch, and the slowest rank's time.
void Training::ShareReport(double own_loss, StepReport& report) const {
  const double mine[2] = {own_loss, report.dt_seconds};
  std::vector<double> all(2 * static_cast<std::size_t>(world_.size()));
  world_.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(mine)), comm::BufferOf(absl::MakeSpan(all)));
  for (std::size_t k = 0; k < all.size(); k += 2) {
    report.loss += all[k];
    report.slowest_seconds = std::max(report.slowest_seconds, all[k + 1]);
  }
  report.mfu_percent = MfuPercent(flops_per_token_, static_cast<double>(report.tokens) / report.ranks,
                                  report.dt_seconds, parts_.peak_flops);
}

// The same numbers on every rank, so all return alike.
absl::Status Training::CheckFinite(const StepReport& report, bool overflowed) const {
  const bool bad_norm = !overflowed && config_.grad_clip > 0 && !std::isfinite(report.gradient_norm);
  if (std::isfinite(report.loss) && !bad_norm) return absl::OkStatus();
  const char* what = std::isfinite(report.loss) ? "norm of the gradients" : "loss";
  std::string tensor;
  for (const std::string& found : comm::GatherText(world_, FirstNonFinite())) {
    if (tensor.empty()) tensor = found;
  }
  const std::string kept = config_.checkpoint_dir.empty()
                               ? ""
                               : absl::StrCat("; the last good checkpoint stays in ", config_.checkpoint_dir);
  return absl::OutOfRangeError(absl::StrFormat(
      "the %s is %g at step %d; first non-finite parameter: %s%s; try a smaller --learning-rate, or "
      "--dtype=float32",
      what, std::isfinite(report.loss) ? report.gradient_norm : report.loss, report.step,
      tensor.empty() ? "none" : tensor, kept));
}

// Of this rank's shares.
std::string Training::FirstNonFinite() const {
  const parallel::DataParallel& engine = parts_.sharded.engine();
  for (std::size_t i = 0; i < engine.shards().size(); ++i) {
    const parallel::FlatLayout& layout = *engine.shards()[i].layout;
    const int rank = layout.ranks() == 1 ? 0 : engine.axes().shard.rank();
    std::string name;
    const absl::Status read = engine.VisitMaster(i, /*changes=*/false, [&](const at::Tensor& master) {
      for (const parallel::FlatSlice& slice : layout.Slices(rank)) {
        const at::Tensor values = master.narrow(0, slice.shard_offset, slice.end - slice.begin);
        if (name.empty() && !at::isfinite(values).all().item<bool>()) {
          name = layout.parameters()[slice.parameter].name;
        }
      }
      return absl::OkStatus();
    });
    if (!read.ok()) return std::string(read.message());
    if (!name.empty()) return name;
  }
  return "";
}

double Training::EvaluateIfDue(StepReport& report) {
  if (!EvaluatesAt(config_, step_)) return 0;
  const double begin = NowSeconds();
  report.losses = Evaluate(step_);
  return NowSeconds() - begin;
}

Losses Training::Evaluate(std::int64_t step) {
  const comm::PhaseScope phase(world_, "evaluation");
  const double begin = NowSeconds();
  const Losses losses = evaluation_.Estimate(parts_.sharded);
  const double estimated = NowSeconds();
  if (config_.sample_tokens > 0) {
    const absl::StatusOr<std::string> sample = evaluation_.Sample(parts_.sharded, step);
    if (!evaluation_.has_asked_prompt() && step == 0) {
      parts_.log.Warning("--sample-prompt: characters that the text has not are left out");
    }
    parts_.log.Info(absl::StrCat("['prompt']: '", evaluation_.prompt(), "'"));
    if (sample.ok()) {
      parts_.log.Info(absl::StrCat("['response']:\n\n", *sample, "\n"));
    } else {
      parts_.log.Warning(absl::StrCat("no sample: ", sample.status().message()));
    }
  }
  parts_.log.Info(absl::StrFormat(
      "estimates after step %d: train_loss=%.6f val_loss=%.6f, 2 x %d batches in %.6f s, sample in %.6f s "
      "(in no step's dt)",
      step, losses.train, losses.validation, config_.eval_iters, estimated - begin,
      NowSeconds() - estimated));
  return losses;
}

absl::Status Training::KeepOrStop() {
  if (!policy_.has_value()) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(SaySaved(saver_->Poll()));
  const parallel::SaveDecision decision = policy_->Decide(step_, parts_.session.StopRequested());
  if (KeepsCheckpointAt(config_, step_) || decision.save) PLAIT_RETURN_IF_ERROR(KeepCheckpoint());
  if (!decision.stop) return absl::OkStatus();
  stopped_ = true;
  parts_.log.Warning(absl::StrCat("Stopped (", decision.reason, ") after step ", step_,
                                  "; go on with --resume=", config_.checkpoint_dir));
  return absl::OkStatus();
}

absl::Status Training::KeepCheckpoint() {
  const comm::PhaseScope phase(world_, "checkpoint");
  PLAIT_RETURN_IF_ERROR(SaySaved(saver_->Finish()));
  parts_.log.Info(absl::StrCat("Saving checkpoint to: ", config_.checkpoint_dir, ", step ", step_));
  PLAIT_RETURN_IF_ERROR(parts_.outputs.Flush());
  const RunState run = {.step = step_,
                        .optimizer_steps = parts_.sharded.optimizer().steps(),
                        .history_draws = parts_.outputs.draws(),
                        .seed = seed_,
                        .sampler = batches_.state(),
                        .loss_scale = scaler_.state()};
  save_begin_seconds_ = NowSeconds();
  const absl::StatusOr<std::vector<parallel::TensorPiece>> pieces =
      parallel::PiecesOf(parts_.sharded.engine(), &parts_.sharded.optimizer());
  PLAIT_RETURN_IF_ERROR(world_.Agree(pieces.status()));
  return saver_->Start(step_, *pieces,
                       ToCheckpoint(run, saved_model_,
                                    {{"program", "train_gpt"},
                                     {"revision", Revision()},
                                     {"settings", parts_.settings},
                                     {"mesh", parts_.mesh.Describe()}}));
}

absl::Status Training::SaySaved(const absl::StatusOr<std::optional<parallel::SaveReport>>& saved) {
  PLAIT_RETURN_IF_ERROR(base::Prefixed(saved.status(), "--checkpoint-dir"));
  if (!saved->has_value()) return absl::OkStatus();
  const double seconds = NowSeconds() - save_begin_seconds_;
  policy_->NoteSave(seconds);
  parts_.log.Info(absl::StrFormat("Saved model to: %s, %.1f MB in %.3f s beside training", (*saved)->folder,
                                  1e-6 * static_cast<double>((*saved)->bytes), seconds));
  return absl::OkStatus();
}

}  // namespace plait::gpt_training
