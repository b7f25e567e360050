#include "tools/gru_training/training.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eq.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "base/timer_report.h"
#include "comm/flight_recorder.h"
#include "tools/gru_training/agreement.h"
#include "tools/gru_training/batches.h"
#include "tools/gru_training/finite.h"

namespace plait::gru_training {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// An earlier run's checkpoint is not written over by a run that does not go on with it.
absl::Status CheckFolder(const Config& config) {
  if (config.checkpoint_dir.empty()) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(base::Prefixed(base::ProbeWritableFolder(config.checkpoint_dir), "--checkpoint-dir"));
  const std::string file = CheckpointFile(config.checkpoint_dir);
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored) || CheckpointFile(config.resume) == file)
    return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(file, ": the checkpoint of an earlier run; go on with --resume=", config.checkpoint_dir,
                   ", or name another folder"));
}

absl::Status CheckPlaces(const Config& config) {
  PLAIT_RETURN_IF_ERROR(CheckFolder(config));
  if (config.history.empty()) return absl::OkStatus();
  return base::Prefixed(base::ProbeWritableFile(config.history), "--history");
}

}  // namespace

Training::Training(const Config& config, const std::string& settings, comm::Session& session,
                   const data::SequenceSet& set, Console& console)
    : config_(config),
      settings_(settings),
      session_(session),
      lp_(session.world().Split(0, session.world().rank(), "lp")),
      set_(set),
      console_(console),
      network_(config, lp_, set.train.channels, static_cast<std::int64_t>(set.class_names.size()), timers_),
      optimizer_(config, network_.parameters()),
      sampler_({.samples = set.train.samples(), .batch_size = config.batch_size, .seed = config.seed}),
      run_settings_(SettingsOf(config, lp_.size(), set.train.channels,
                               static_cast<std::int64_t>(set.class_names.size()), set.train.samples())) {}

absl::Status Training::Run() {
  PLAIT_RETURN_IF_ERROR(Begin());
  while (sampler_.epoch() < config_.epochs && !outcome_.stopped) PLAIT_RETURN_IF_ERROR(TrainEpoch());
  history_.Close();
  PLAIT_RETURN_IF_ERROR(lp_.Agree(history_.status()));
  if (!outcome_.stopped) PrintTables();
  return absl::OkStatus();
}

absl::Status Training::Begin() {
  PLAIT_RETURN_IF_ERROR(lp_.Agree(lp_.rank() == 0 ? CheckPlaces(config_) : absl::OkStatus()));
  if (!config_.resume.empty()) PLAIT_RETURN_IF_ERROR(Resume());
  if (lp_.rank() == 0) {
    absl::StatusOr<RunHistory> history =
        RunHistory::Open(config_, settings_, lp_.size(), config_.resume.empty() ? -1 : draws_);
    PLAIT_RETURN_IF_ERROR(lp_.Agree(history.status()));
    history_ = *std::move(history);
  } else {
    PLAIT_RETURN_IF_ERROR(lp_.Agree(absl::OkStatus()));
  }
  return absl::OkStatus();
}

absl::Status Training::Resume() {
  Progress progress;
  const std::string file = CheckpointFile(config_.resume);
  const absl::Status loaded =
      LoadCheckpoint(file, run_settings_, progress, network_.parameters(), optimizer_);
  PLAIT_RETURN_IF_ERROR(lp_.Agree(loaded));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(sampler_.Restore(progress.sampler), file));
  draws_ = progress.history_draws;
  console_.Print(absl::StrFormat("Resuming at epoch %d, sample %d: %s\n", sampler_.epoch() + 1,
                                 sampler_.position(), file));
  return absl::OkStatus();
}

absl::Status Training::TrainEpoch() {
  const Clock::time_point start = Clock::now();
  progress_ = TrainProgress();
  progress_.epoch = sampler_.epoch() + 1;
  progress_.samples = set_.train.samples();
  progress_.synthetic = set_.synthetic;
  console_.StartBar(absl::StrCat("epoch ", progress_.epoch), sampler_.batches_per_epoch());
  std::int64_t batch = sampler_.position() / config_.batch_size;
  while (const std::optional<std::vector<std::int64_t>> indices = sampler_.Next()) {
    PLAIT_RETURN_IF_ERROR(TrainBatch(*indices));
    progress_.samples_done = sampler_.position();
    if (batch++ % config_.log_interval == 0) PrintProgress(/*end_of_epoch=*/false);
    if (config_.lp_braid_print > 0) PrintResiduals();
    console_.Update(batch);
    PLAIT_RETURN_IF_ERROR(EndOfBatch());
    if (outcome_.stopped) return absl::OkStatus();
  }
  // None: the run was stopped between the last batch and the tests.
  if (progress_.times.batches > 0) PrintProgress(/*end_of_epoch=*/true);
  console_.StopBar();
  return TestEpoch(SecondsSince(start));
}

absl::Status Training::TrainBatch(absl::Span<const std::int64_t> indices) {
  const comm::PhaseScope phase(lp_, "training");
  base::ScopedTimer gather_timer(timers_.Get("batch"));
  const Batch batch = MakeBatch(set_.train, indices, c10::typeMetaToScalarType(network_.options().dtype()));
  optimizer_.ZeroGradients();
  gather_timer.Stop();

  BatchTimes times;
  const Clock::time_point start = Clock::now();
  const at::Tensor scores = network_.Scores(batch.x);
  times.forward_seconds = SecondsSince(start);
  const Clock::time_point scored = Clock::now();
  const at::Tensor loss = at::cross_entropy_loss(scores, batch.y);
  progress_.loss = loss.item<double>();
  times.loss_seconds = SecondsSince(scored);
  PLAIT_RETURN_IF_ERROR(CheckFinite("loss", progress_.loss));
  const Clock::time_point lost = Clock::now();
  loss.backward();
  times.backward_seconds = SecondsSince(lost);
  network_.CountBackward();
  gradient_norm_ = GradientNorm(network_.parameters());
  PLAIT_RETURN_IF_ERROR(CheckFinite("gradient", gradient_norm_));

  base::ScopedTimer optimizer_timer(timers_.Get("optimizer"));
  optimizer_.Step();
  optimizer_timer.Stop();
  RecordBatch(times);
  return absl::OkStatus();
}

// The same number on every rank, so all return alike.
absl::Status Training::CheckFinite(const char* what, double value) {
  if (std::isfinite(value)) return absl::OkStatus();
  std::string tensor = FirstNonFinite(network_.parameters());
  if (tensor.empty()) tensor = "the scores of the network";
  const std::string kept = config_.checkpoint_dir.empty()
                               ? ""
                               : absl::StrCat("; the last good checkpoint stays in ", config_.checkpoint_dir);
  return absl::OutOfRangeError(
      absl::StrFormat("the %s is %g at epoch %d, batch %d; first non-finite tensor: %s%s", what, value,
                      progress_.epoch, progress_.times.batches + 1, tensor, kept));
}

void Training::RecordBatch(const BatchTimes& times) {
  timers_.Get("forward").Add(times.forward_seconds);
  timers_.Get("loss").Add(times.loss_seconds);
  timers_.Get("backward").Add(times.backward_seconds);
  progress_.times.Add(times);
  progress_.forward = network_.last_forward();
  progress_.backward = network_.last_backward();
  ++draws_;
  history_.Append(
      {{"epoch", static_cast<double>(progress_.epoch)},
       {"batch", static_cast<double>((sampler_.position() + config_.batch_size - 1) / config_.batch_size)},
       {"loss", progress_.loss},
       {"gradient_norm", gradient_norm_},
       {"time_per_batch", times.seconds()},
       {"forward_time", times.forward_seconds},
       {"loss_time", times.loss_seconds},
       {"backward_time", times.backward_seconds},
       {"forward_iterations", static_cast<double>(progress_.forward.iterations)},
       {"forward_residual", progress_.forward.last_residual()},
       {"backward_iterations", static_cast<double>(progress_.backward.iterations)},
       {"backward_residual", progress_.backward.last_residual()}});
}

// What only one rank knows: a signal, or a history that cannot be written.
absl::Status Training::EndOfBatch() {
  if (config_.checkpoint_dir.empty() && config_.history.empty()) return absl::OkStatus();
  const bool stop = session_.StopRequested();
  if (!AnyRank(lp_, stop || !history_.status().ok())) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(lp_.Agree(history_.status()));
  outcome_.stopped = true;
  PLAIT_RETURN_IF_ERROR(KeepCheckpoint());
  console_.StopBar();
  console_.Print(absl::StrFormat("\nStopped by SIGTERM at epoch %d, sample %d; go on with --resume=%s",
                                 progress_.epoch, sampler_.position(), config_.checkpoint_dir));
  return absl::OkStatus();
}

absl::Status Training::TestEpoch(double epoch_seconds) {
  const comm::PhaseScope phase(lp_, "test");
  const TestResult parallel = Test();
  const TestResult serial = network_.layer_parallel() ? TestSerially() : parallel;
  console_.Print("\n" + TestLine("PARALLEL", progress_.epoch, parallel, set_.synthetic));
  console_.Print(TestLine("SERIAL", progress_.epoch, serial, set_.synthetic) + "\n");
  outcome_.parallel_accuracy = parallel.accuracy();
  outcome_.serial_accuracy = serial.accuracy();
  outcome_.epoch_seconds.push_back(epoch_seconds);
  outcome_.test_seconds.push_back(parallel.seconds);
  ++draws_;
  history_.Append({{"epoch", static_cast<double>(progress_.epoch)},
                   {"parallel_accuracy", parallel.accuracy()},
                   {"serial_accuracy", serial.accuracy()},
                   {"parallel_test_time", parallel.seconds},
                   {"serial_test_time", serial.seconds},
                   {"epoch_time", epoch_seconds}});
  sampler_.NextEpoch();
  if (!config_.checkpoint_dir.empty()) PLAIT_RETURN_IF_ERROR(KeepCheckpoint());
  return EndOfBatch();
}

TestResult Training::TestBy(const std::function<at::Tensor(const at::Tensor&)>& scores) {
  const at::NoGradGuard no_grad;
  TestResult result;
  result.samples = set_.test.samples();
  data::Sampler sampler({.samples = result.samples, .batch_size = config_.batch_size, .shuffle = false});
  while (const std::optional<std::vector<std::int64_t>> indices = sampler.Next()) {
    const Batch batch = MakeBatch(set_.test, *indices, c10::typeMetaToScalarType(network_.options().dtype()));
    const Clock::time_point start = Clock::now();
    const at::Tensor classes = scores(batch.x).argmax(1);
    result.seconds += SecondsSince(start);
    result.correct += classes.eq(batch.y).sum().item<std::int64_t>();
    ++result.batches;
  }
  return result;
}

TestResult Training::Test() {
  return TestBy([this](const at::Tensor& x) { return network_.Scores(x); });
}

// By rank 0 while the others wait: the time of a serial program.
TestResult Training::TestSerially() {
  TestResult result;
  if (lp_.rank() == 0) result = TestBy([this](const at::Tensor& x) { return network_.SerialScores(x); });
  result.samples = set_.test.samples();
  result.correct = BroadcastNumber(lp_, result.correct);
  return result;
}

absl::Status Training::KeepCheckpoint() {
  if (config_.checkpoint_dir.empty()) return absl::OkStatus();
  absl::Status status;
  if (lp_.rank() == 0) {
    const Progress progress{sampler_.state(), optimizer_.steps(), draws_};
    status = SaveCheckpoint(CheckpointFile(config_.checkpoint_dir), run_settings_, progress,
                            network_.parameters(), optimizer_);
  }
  return lp_.Agree(status);
}

void Training::PrintProgress(bool end_of_epoch) {
  console_.Print(TrainLine(progress_, end_of_epoch));
  if (!end_of_epoch && config_.lp_print > 0 && config_.lp_braid_print == 0) PrintResiduals();
}

void Training::PrintResiduals() {
  if (!network_.layer_parallel()) return;
  console_.Print(ResidualLines("forward", progress_.forward));
  console_.Print(ResidualLines("backward", progress_.backward));
}

void Training::PrintTables() {
  std::string tables;
  for (const std::string& table : GatherTexts(lp_, base::TimerTable(timers_, lp_.rank()))) tables += table;
  const char* mark = set_.synthetic ? "\t(synthetic data)" : "";
  console_.Print(tables);
  console_.Print(absl::StrFormat("TIME PER EPOCH: %.2e%s\nTIME PER TEST:  %.2e%s",
                                 MeanOf(outcome_.epoch_seconds), mark, MeanOf(outcome_.test_seconds), mark));
}

}  // namespace plait::gru_training
