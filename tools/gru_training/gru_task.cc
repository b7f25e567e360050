#include "tools/gru_training/gru_task.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/eq.h>
#include <torch/nn/module.h>

#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "comm/long_barrier.h"
#include "tools/device/device.h"
#include "tools/gru_training/batches.h"
#include "tools/gru_training/timed_step.h"
#include "tools/training/resume.h"

namespace plait::gru_training {
namespace {

constexpr char kEpochSeconds[] = "epoch.seconds";

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

gru::SequenceClassifierOptions ClassifierOptions(const GruSettings& s, bool implicit,
                                                 const data::SequenceSet& set) {
  gru::SequenceClassifierOptions options;
  gru::GruConfig& cell = options.gru.cell;
  cell.input = set.train.channels;
  cell.hidden = s.hidden_size;
  cell.layers = s.num_layers;
  cell.kind = implicit ? gru::GruKind::kImplicit : gru::GruKind::kClassic;
  if (s.dtype == "bfloat16") cell.products = gru::GruProducts::kBFloat16;
  options.gru.final_time = s.tf;
  options.classes = static_cast<std::int64_t>(set.class_names.size());
  return options;
}

gru::SequenceClassifier SeededClassifier(const GruSettings& s, const data::SequenceSet& set) {
  at::manual_seed(s.seed);
  return {ClassifierOptions(s, s.trains_implicit(), set), at::kFloat};
}

}  // namespace

GruTask::GruTask(const GruSettings& settings, const training::Run& run, const Sequences& sequences)
    : settings_(settings),
      run_(run),
      set_(sequences.set),
      facts_(sequences.facts),
      initial_(SeededClassifier(settings, set_)),
      model_(ClassifierOptions(settings, settings.trains_implicit(), set_),
             at::TensorOptions(settings.master_type()).device(at::kMeta)),
      sampler_(
          {.samples = set_.train.samples(), .batch_size = settings.global_batch_size, .seed = settings.seed},
          settings.gradient_accumulation_steps) {}

training::TrainedModel GruTask::model() {
  const auto kind = settings_.use_sgd ? parallel::OptimizerKind::kSgd : parallel::OptimizerKind::kAdam;
  const ActivationBytes bytes = ActivationBytesPerSample(
      settings_, model_.gru().options().cell, at::TensorOptions(settings_.master_type()).device(run_.device),
      run_.mesh.axis("lp").size());
  return {.model = &model_,
          .optimizer = {.kind = kind, .lr = settings_.lr},
          .initialize =
              [this](std::size_t unit) {
                const at::NoGradGuard no_grad;
                const models::ParameterUnit from = initial_.units()[unit], to = model_.units()[unit];
                for (std::size_t i = 0; i < to.parameters.size(); ++i) {
                  to.parameters[i].tensor.copy_(from.parameters[i].tensor);
                }
                return absl::OkStatus();
              },
          .run_block = [this](std::size_t, const models::BlockState& input,
                              const models::BlockContext& context) { return RunBlock(input, context); },
          .solver = [this] { return solves_parallel() ? &parallel().solver() : nullptr; },
          .coarse_hold = CoarseHold(),
          .activation_bytes_per_sample = bytes.training,
          .fixed_activation_bytes = KeptBytes(bytes)};
}

// Other holds of coarse steps, which --lp-auto may take.
training::CoarseHold GruTask::CoarseHold() {
  const auto with = [own = settings_.StepOptions()](int hold) {
    gru::GruStepOptions options = own;
    if (hold >= 0) options.coarse_hold = {hold};
    return options;
  };
  return {.choices = {0, 2, 4},
          .set = [this, with](int hold) { parallel().set_step_options(with(hold)); },
          .evaluations =
              [with](const mgrit::StepInterval& interval, int hold) {
                return gru::SubstepsOf(with(hold), interval.level, interval.fine_stop - interval.fine_start);
              }};
}

// Of the last, short step of an epoch, whose micro-batches may differ by a sample, and of tests: their memory
// is kept beside that of the others.
std::int64_t GruTask::KeptBytes(const ActivationBytes& bytes) const {
  const std::int64_t micro_batches = settings_.gradient_accumulation_steps, ranks = run_.data.size();
  const auto share = [](std::int64_t samples, std::int64_t parts) { return (samples + parts - 1) / parts; };
  const std::int64_t last_step = set_.train.samples() % StepSamples();
  const std::int64_t last = share(last_step, micro_batches * ranks) * (micro_batches > 1 ? 2 : 1);
  const std::int64_t tested = settings_.SamplesPerRank(run_.data.size()) +
                              share(set_.test.samples() % settings_.global_batch_size, ranks);
  return last * bytes.training + tested * bytes.evaluation;
}

training::NamedValues GruTask::facts() const {
  training::NamedValues facts = {
      {"channels", absl::StrCat(set_.train.channels)},
      {"classes", absl::StrCat(set_.class_names.size())},
      {"training_samples", absl::StrCat(set_.train.samples())},
      {"training_targets_crc32",
       training::DigestOf(set_.train.samples(), [this](std::int64_t i) { return set_.train.y[i]; })}};
  facts.insert(facts_.begin(), facts_.end());
  return facts;
}

training::NamedValues GruTask::shared_facts() const {
  return {{"test_samples", absl::StrCat(set_.test.samples())},
          {"test_targets_crc32",
           training::DigestOf(set_.test.samples(), [this](std::int64_t i) { return set_.test.y[i]; })}};
}

training::TaskProgress GruTask::progress() const {
  return {absl::StrCat("epoch ", sampler_.epoch() + 1, " of ", settings_.epochs), sampler_.run_position(),
          settings_.epochs * sampler_.samples()};
}

gru::LayerParallelGru& GruTask::parallel() {
  if (parallel_ == nullptr) {
    const std::shared_ptr<torch::nn::Module> module = model_.gru().module();
    parallel_ = std::make_unique<gru::LayerParallelGru>(
        [module] { return module->parameters(); }, model_.gru().options().cell,
        at::TensorOptions(settings_.master_type()).device(run_.device), run_.mesh.axis("lp"),
        settings_.sequence_length, settings_.tf, settings_.lp.Options(), settings_.StepOptions(),
        [this](std::shared_ptr<mgrit::TensorStep> step) {
          return std::make_shared<TimedStep>(step, timers_);
        });
  }
  return *parallel_;
}

models::BlockState GruTask::RunBlock(const models::BlockState& input, const models::BlockContext& context) {
  const double begin = NowSeconds();
  models::BlockState output;
  if (solve_ == Solve::kSerial) {
    if (serial_ == nullptr) {
      serial_ = std::make_unique<gru::SerialGru>(
          ClassifierOptions(settings_, settings_.tests_implicit(), set_).gru, model_.gru().module());
    }
    output.hidden = serial_->Forward(input.hidden).output;
  } else if (solves_parallel()) {
    CountBackward();
    const at::Tensor state = parallel().Forward(input.hidden);
    CountSolve("ForWD", parallel().solver().last_forward());
    backward_follows_ = at::GradMode::is_enabled();
    output.hidden = state.select(0, state.size(0) - 1);
  } else {
    output = model_.blocks()[0]->Forward(input, context);
  }
  blocks_.push_back({begin, NowSeconds()});
  return output;
}

// Seconds of the spans within the last step's forward passes: not of passes that measure the solver's bias, nor of
// recomputed ones.
double GruTask::InForwardPasses(const std::vector<Span>& spans) const {
  double seconds = 0;
  for (const parallel::ActionTime& time : trainer_->timeline()) {
    if (time.action.kind != parallel::ActionKind::kForward) continue;
    for (const Span& span : spans) {
      const bool within = span.begin >= 1e-9 * static_cast<double>(time.begin_ns) &&
                          span.end <= 1e-9 * static_cast<double>(time.end_ns);
      if (within) seconds += span.end - span.begin;
    }
  }
  return seconds;
}

void GruTask::CountSolve(const char* direction, const mgrit::Solution& solution) {
  timers_.Get(absl::StrCat(direction, "::func:run")).Add(solution.seconds);
  timers_.Get(absl::StrCat(direction, "::comm:wait")).Add(solution.work.wait_seconds);
}

// Of the last forward solve that had one: also of passes that measure the solver's bias.
void GruTask::CountBackward() {
  if (std::exchange(backward_follows_, false)) CountSolve("BckWD", parallel().solver().last_backward());
}

void GruTask::BeginStep(double now) {
  gathers_.clear();
  blocks_.clear();
  if (sampler_.position() > 0 && progress_.forward_times.count() > 0) return;
  epoch_begin_ = now - std::exchange(earlier_seconds_, 0);
  progress_ = TrainProgress();
  progress_.epoch = sampler_.epoch() + 1;
  progress_.samples = sampler_.samples();
  progress_.synthetic = set_.synthetic;
}

training::MicroBatch GruTask::Next(int k) {
  const double begin = NowSeconds();
  if (k == 0) BeginStep(begin);
  const std::vector<std::int64_t> mine = sampler_.Next(k, run_.data.rank(), run_.data.size());
  training::MicroBatch micro = {.batch = MakeBatch(set_.train, mine, settings_.master_type()),
                                .nominal_count = sampler_.step_samples()};
  gathers_.push_back({begin, NowSeconds()});
  return micro;
}

absl::Status GruTask::EndStep(const training::StepReport& report, bool evaluates) {
  progress_.loss = report.loss;
  progress_.samples_done = sampler_.position();
  PLAIT_RETURN_IF_ERROR(TakeBatch(report));
  const std::int64_t batch = (sampler_.position() - 1) / StepSamples();  // from 0
  if (batch % settings_.log_interval == 0) PrintProgress(/*end_of_epoch=*/false);
  if (settings_.lp_braid_print > 0) PrintResiduals();
  if (!evaluates) return absl::OkStatus();
  PrintProgress(/*end_of_epoch=*/true);
  return TestEpoch();
}

// Times of the GRU's forward pass, of head and loss, and of backward.
absl::Status GruTask::TakeBatch(const training::StepReport& report) {
  const double gather = InForwardPasses(gathers_), forward = InForwardPasses(blocks_),
               loss = report.forward_seconds - gather - forward,
               backward = report.backward_seconds - report.optimizer_seconds;
  double gathered = 0;
  for (const Span& span : gathers_) gathered += span.end - span.begin;
  timers_.Get("batch").Add(gathered);
  timers_.Get("forward").Add(forward);
  timers_.Get("loss").Add(loss);
  timers_.Get("backward").Add(backward);
  timers_.Get("optimizer").Add(report.optimizer_seconds);
  progress_.forward_times.Add(forward);
  progress_.loss_times.Add(loss);
  progress_.backward_times.Add(backward);
  if (solves_parallel()) {
    progress_.forward = parallel().solver().last_forward();
    progress_.backward = parallel().solver().last_backward();
    CountBackward();
  }
  return trainer_->Record({{"epoch", static_cast<double>(progress_.epoch)},
                           {"batch", static_cast<double>((sampler_.position() - 1) / StepSamples() + 1)},
                           {"loss", report.loss},
                           {"gradient_norm", report.gradient_norm},
                           {"dt", report.dt_seconds},
                           {"dtf", report.forward_seconds},
                           {"dtb", report.backward_seconds},
                           {"forward_time", forward},
                           {"loss_time", loss},
                           {"backward_time", backward}});
}

TestResult GruTask::Test(Solve solve) {
  TestResult result = {.samples = set_.test.samples()};
  const std::int64_t batch_size = settings_.global_batch_size;
  data::Sampler sampler({.samples = result.samples, .batch_size = batch_size, .shuffle = false});
  result.batches = sampler.batches_per_epoch();
  solve_ = solve;
  const std::vector<double> sums = trainer_->Evaluate(
      "test", result.batches, 2,
      [&](std::int64_t, training::DeviceSums& sum) {
        const models::Batch batch = trainer_->model().OnDevice(
            MakeBatch(set_.test, data::ShareOf(*sampler.Next(), run_.data.rank(), run_.data.size()),
                      settings_.master_type()));
        const double start = device::SecondsWhenDone(run_.device);
        const at::Tensor scores = trainer_->model().Output(batch);
        const at::Tensor classes = scores.argmax(1);
        result.seconds += device::SecondsWhenDone(run_.device) - start;
        sum.Add(0, classes.eq(batch.targets).sum());
        sum.Add(1, scores.isfinite().all(1).logical_not().sum());
      },
      /*by_all_ranks=*/solve == Solve::kTrained);
  solve_ = Solve::kTrained;
  result.correct = static_cast<std::int64_t>(sums[0]);
  result.not_finite = static_cast<std::int64_t>(sums[1]);
  return result;
}

absl::StatusOr<GruTask::Tests> GruTask::TestBoth(std::int64_t epoch) {
  const TestResult parallel = Test(Solve::kTrained);
  TestResult serial = parallel;
  if (solves_parallel()) {
    // By the first rank along lp while the others wait: the time of a serial program.
    const comm::Communicator& lp = run_.mesh.axis("lp");
    if (lp.rank() == 0) serial = Test(Solve::kSerial);
    // Which may take longer than a call may wait.
    comm::LongBarrier(lp, std::numeric_limits<double>::infinity());
    std::int64_t counts[2] = {serial.correct, serial.not_finite};
    lp.Broadcast(comm::BufferOf(absl::MakeSpan(counts)), 0);
    serial.correct = counts[0];
    serial.not_finite = counts[1];
  }
  // The argmax of NaNs is class 0.
  if (parallel.not_finite + serial.not_finite > 0) {
    return trainer_->CheckEvaluated("test score", std::numeric_limits<double>::quiet_NaN());
  }
  run_.console.Print("\n" + TestLine("PARALLEL", epoch, parallel, set_.synthetic));
  run_.console.Print(TestLine("SERIAL", epoch, serial, set_.synthetic) + "\n");
  return Tests{parallel, serial};
}

absl::Status GruTask::EvaluateOnly() {
  return TestBoth(sampler_.epoch() + (sampler_.position() > 0 ? 1 : 0)).status();
}

void GruTask::Save(parallel::CheckpointState& state) const {
  sampler_.Save(state);
  const double seconds = sampler_.position() > 0 ? NowSeconds() - epoch_begin_ : 0;
  state.texts[kEpochSeconds] = absl::StrFormat("%a", seconds);
}

absl::Status GruTask::Restore(const parallel::Checkpoint& checkpoint) {
  PLAIT_RETURN_IF_ERROR(sampler_.Restore(checkpoint));
  // Checkpoints of earlier versions have none.
  if (checkpoint.texts().count(kEpochSeconds) == 0) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(earlier_seconds_, checkpoint.Number(kEpochSeconds));
  return absl::OkStatus();
}

absl::Status GruTask::TestEpoch() {
  const double epoch_seconds = NowSeconds() - epoch_begin_;
  PLAIT_ASSIGN_OR_RETURN(const Tests tests, TestBoth(progress_.epoch));
  const auto& [parallel, serial] = tests;
  outcome_.parallel_accuracy = parallel.accuracy();
  outcome_.serial_accuracy = serial.accuracy();
  outcome_.epochs.Add(epoch_seconds);
  outcome_.tests.Add(parallel.seconds);
  sampler_.NextEpoch();
  return trainer_->Record({{"epoch", static_cast<double>(progress_.epoch)},
                           {"test_acc", 100 * parallel.accuracy()},
                           {"serial_test_acc", 100 * serial.accuracy()},
                           {"parallel_test_time", parallel.seconds},
                           {"serial_test_time", serial.seconds},
                           {"epoch_time", epoch_seconds}});
}

void GruTask::PrintProgress(bool end_of_epoch) {
  run_.console.Print(TrainLine(progress_, end_of_epoch));
  if (!end_of_epoch && settings_.lp_print > 0 && settings_.lp_braid_print == 0) PrintResiduals();
}

void GruTask::PrintResiduals() {
  if (!solves_parallel()) return;
  run_.console.Print(ResidualLines("forward", progress_.forward));
  run_.console.Print(ResidualLines("backward", progress_.backward));
}

std::vector<training::Recorded> GruTask::metrics() const {
  return {{data::Count("epoch", "epoch, from 1")},
          {data::Count("batch", "batch within the epoch, from 1")},
          {{"loss", "1", "cross entropy of the batch"}},
          {{"gradient_norm", "1", "2-norm of all gradients, before clipping"}},
          {{"dt", "s", "time per step"}},
          {{"dtf", "s", "forward passes and losses"}},
          {{"dtb", "s", "backward passes, reductions and optimizer"}},
          {{"forward_time", "s", "forward evaluation of the batch"}},
          {{"loss_time", "s", "head and loss of the batch"}},
          {{"backward_time", "s", "backward evaluation of the batch"}},
          {{"test_acc", "%", "test samples that the trained network classifies correctly"}},
          {{"serial_test_acc", "%", "the same, through the serial network"}},
          {{"parallel_test_time", "s", "test of the trained network"}},
          {{"serial_test_time", "s", "test through the serial network"}},
          {{"epoch_time", "s", "training in the epoch"}}};
}

training::HistoryPlots GruTask::plots() const {
  return {.x = "step",
          .title = set_.synthetic ? "synthetic: " : "",
          .skips_nan = true,
          .plots = {{"loss"}, {"gradient_norm"}, {"dt"}, {"test_acc"}, {"serial_test_acc"}, {"epoch_time"}}};
}

}  // namespace plait::gru_training
