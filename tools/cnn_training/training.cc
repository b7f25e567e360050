#include "tools/cnn_training/training.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/nll_loss.h>

#include <chrono>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "comm/flight_recorder.h"
#include "parallel/training_state/training_state.h"
#include "tools/cnn_training/evaluation.h"

namespace plait::cnn_training {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Training::Training(const Config& config, const std::string& settings, comm::Session& session,
                   const Images& images, ShardedCnn& net, Outputs& outputs, const base::Log& log)
    : config_(config),
      settings_(settings),
      session_(session),
      world_(session.world()),
      images_(images),
      net_(net),
      outputs_(outputs),
      log_(log),
      schedule_(parallel::LrSchedule::StepLr({.lr = config.lr, .step_size = 1, .gamma = config.gamma})),
      sampler_({.samples = images.set.train.samples(),
                .batch_size = config.batch_size * world_.size(),
                .seed = config.seed}),
      policy_(world_, {.every_steps = config.checkpoint_every, .check_every_steps = 4}),
      saver_(world_, config.checkpoint_dir, {.keep_last = config.keep_last}) {}

absl::Status Training::Run(const RunState& state) {
  state_ = state;
  if (state_.step > 0) PLAIT_RETURN_IF_ERROR(sampler_.Restore(state_.sampler));
  net_.optimizer().set_steps(state_.step);
  saved_step_ = state_.step;
  session_.EnterSteps();
  absl::Status status;
  while (status.ok() && sampler_.epoch() < config_.epochs && !stopped_) status = TrainEpoch();
  // Also after an error: the engine must not go while its parameters are on their way.
  net_.engine().WaitForParameters();
  PLAIT_RETURN_IF_ERROR(status);
  PLAIT_RETURN_IF_ERROR(saver_.Finish().status());
  return outputs_.Close();
}

absl::Status Training::TrainEpoch() {
  const comm::PhaseScope phase(world_, "training");
  const Clock::time_point start = Clock::now();
  const double seconds_before = state_.seconds;
  net_.optimizer().set_lr(schedule_.At(sampler_.epoch()));
  while (const std::optional<std::vector<std::int64_t>> indices = sampler_.Next()) {
    PLAIT_RETURN_IF_ERROR(TrainBatch(*indices));
    state_.seconds = seconds_before + SecondsSince(start);
    if (sampler_.position() == images_.set.train.samples()) break;  // the epoch's end has its own checkpoint
    PLAIT_RETURN_IF_ERROR(KeepCheckpoints(/*end_of_epoch=*/false));
    if (stopped_) return absl::OkStatus();
  }
  PLAIT_RETURN_IF_ERROR(EndEpoch());
  seconds_ += SecondsSince(start);
  ++epochs_done_;
  return KeepCheckpoints(/*end_of_epoch=*/true);
}

absl::Status Training::TrainBatch(absl::Span<const std::int64_t> indices) {
  // Other ranks drop other units, and a resumed run the same ones as without the interruption.
  at::manual_seed(
      base::DeriveSeed(base::DeriveSeed(config_.seed, "dropout", state_.step), "rank", world_.rank()));
  const Batch batch = MakeBatch(images_.set.train, images_.scale,
                                data::ShareOf(indices, world_.rank(), world_.size()), ComputeType(config_));
  const at::ScalarType loss_type = MasterType(config_);
  const auto samples = static_cast<double>(indices.size());
  const at::Tensor loss = net_.engine().Forward([&] {
    const at::Tensor scores = net_.Forward(batch.x).to(loss_type);
    return at::nll_loss(scores, batch.y, {}, at::Reduction::Sum) / samples;
  });
  net_.engine().Backward(loss);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(net_.optimizer().Step().status, "--offload"));
  state_.loss_sum += loss.item<double>() * samples;
  ++state_.step;
  return absl::OkStatus();
}

// A loss that is no number is one on all ranks.
absl::StatusOr<double> Training::MeanTrainLoss() const {
  double sum[1] = {state_.loss_sum};
  world_.AllReduce(comm::BufferOf(absl::MakeSpan(sum)));
  if (std::isfinite(sum[0])) return sum[0] / static_cast<double>(images_.set.train.samples());
  const std::string kept = config_.checkpoint_dir.empty()
                               ? ""
                               : absl::StrCat("; the checkpoints before it stay in ", config_.checkpoint_dir);
  return absl::OutOfRangeError(absl::StrCat("the loss of epoch ", sampler_.epoch() + 1,
                                            " is not finite: choose a smaller --lr", kept));
}

absl::Status Training::EndEpoch() {
  const int epoch = static_cast<int>(sampler_.epoch());
  PLAIT_ASSIGN_OR_RETURN(const double train_loss, MeanTrainLoss());
  const TestResult test = Test(net_, images_, config_.test_batch_size, ComputeType(config_), world_);
  const EpochReport report = {.epoch = epoch + 1,
                              .dt = state_.seconds,
                              .train_loss = train_loss,
                              .test_loss = test.loss,
                              .test_accuracy = test.accuracy(),
                              .lr = schedule_.At(epoch)};
  log_.Info(EpochLine(report));
  PLAIT_RETURN_IF_ERROR(outputs_.Record(report));
  state_.loss_sum = state_.seconds = 0;
  sampler_.NextEpoch();
  return absl::OkStatus();
}

absl::Status Training::KeepCheckpoints(bool end_of_epoch) {
  if (config_.checkpoint_dir.empty()) return absl::OkStatus();
  const comm::PhaseScope phase(world_, "checkpoint");
  PLAIT_RETURN_IF_ERROR(saver_.Poll().status());
  const parallel::SaveDecision decision = policy_.Decide(state_.step, session_.StopRequested());
  const bool last = end_of_epoch && sampler_.epoch() == config_.epochs;
  const bool due = decision.save || last || (end_of_epoch && config_.checkpoint_every == 0);
  if (due && saved_step_ != state_.step) PLAIT_RETURN_IF_ERROR(Save());
  if (!decision.stop || last) return absl::OkStatus();
  stopped_ = true;
  PLAIT_RETURN_IF_ERROR(saver_.Finish().status());
  log_.Info(absl::StrFormat("stopped at epoch %d, step %d (%s); go on with --resume=%s", sampler_.epoch() + 1,
                            state_.step, decision.reason, config_.checkpoint_dir));
  return absl::OkStatus();
}

absl::Status Training::Save() {
  const Clock::time_point start = Clock::now();
  state_.sampler = sampler_.state();
  state_.history_draws = outputs_.draws();
  const absl::StatusOr<std::vector<parallel::TensorPiece>> pieces =
      parallel::PiecesOf(net_.engine(), &net_.optimizer());
  PLAIT_RETURN_IF_ERROR(world_.Agree(pieces.status()));
  PLAIT_RETURN_IF_ERROR(
      saver_.Start(state_.step, *pieces,
                   ToCheckpoint(state_, SettingsOf(config_, world_.size(), images_.set), settings_)));
  saved_step_ = state_.step;
  policy_.NoteSave(SecondsSince(start));
  return absl::OkStatus();
}

}  // namespace plait::cnn_training
