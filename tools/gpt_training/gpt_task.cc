#include "tools/gpt_training/gpt_task.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "models/sampling/sampler.h"
#include "tools/gpt_training/flops.h"
#include "tools/gpt_training/model_report.h"

namespace plait::gpt_training {
namespace {

using rank_history::RankStatistics;
using training::Run;

// Metrics of the communication along an axis.
struct AxisMetrics {
  const char *axis, *bytes, *in_flight, *exposed;
};
constexpr AxisMetrics kAxisMetrics[] = {
    {"dp_replicate", "comm_bytes_dp_replicate", "comm_in_flight_dp_replicate", "comm_exposed_dp_replicate"},
    {"dp_shard", "comm_bytes_dp_shard", "comm_in_flight_dp_shard", "comm_exposed_dp_shard"}};

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

parallel::LrSchedule ScheduleOf(const GptSettings& s) {
  if (!s.decay_lr) return parallel::LrSchedule::Constant(s.learning_rate);
  return parallel::LrSchedule::WarmupCosine({.lr = s.learning_rate,
                                             .warmup_steps = s.warmup_iters,
                                             .decay_steps = std::max(s.lr_decay_iters, s.warmup_iters),
                                             .min_lr = s.min_lr});
}

absl::StatusOr<gpt::GptOptions> OptionsOf(const GptSettings& settings, const Run& run, const Corpus& corpus,
                                          const std::optional<gpt::HuggingFaceGpt2>& files) {
  const std::int64_t vocabulary = corpus.text.vocabulary_size;
  gpt::GptOptions options = settings.Options(vocabulary);
  if (run.checkpoint.has_value()) {
    PLAIT_ASSIGN_OR_RETURN(const SavedModel saved, SavedModelOf(*run.checkpoint));
    options = saved.options;
  } else if (files.has_value()) {
    options = files->options();
    if (options.vocab_size != vocabulary) {
      return absl::InvalidArgumentError(absl::StrCat("--init-from=", settings.init_from, ": the model has ",
                                                     options.vocab_size, " tokens, the text's tokenizer ",
                                                     vocabulary, "; give --tokenizer=gpt2"));
    }
  }
  options.dropout = settings.dropout;
  return options;
}

absl::StatusOr<BlockBatches> BatchesOf(const GptSettings& settings, const Run& run,
                                       const std::vector<std::uint16_t>& tokens, const std::string& name) {
  absl::StatusOr<BlockBatches> batches =
      BlockBatches::Make(tokens,
                         {.block_size = settings.block_size,
                          .batch_size = settings.GlobalBatch(run.data.size()),
                          .seed = settings.seed,
                          .name = name},
                         run.data.rank(), run.data.size());
  PLAIT_RETURN_IF_ERROR(base::Prefixed(batches.status(), "--block-size"));
  return batches;
}

// What of the text the tokenizer has ids for: UTF-8 characters outside the vocabulary are dropped.
std::vector<std::int32_t> KnownTokens(const data::Tokenizer& tokenizer, const std::string& text) {
  absl::StatusOr<std::vector<std::int32_t>> all = tokenizer.Encode(text);
  if (all.ok()) return *all;
  std::vector<std::int32_t> known;
  for (std::size_t begin = 0, end = 1; begin < text.size(); begin = end++) {
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    const auto ids = tokenizer.Encode(text.substr(begin, end - begin));
    if (ids.ok()) known.insert(known.end(), ids->begin(), ids->end());
  }
  return known;
}

}  // namespace

GptTask::GptTask(const GptSettings& settings, const Run& run, const Corpus& corpus,
                 const std::optional<gpt::HuggingFaceGpt2>& files, const gpt::GptOptions& options,
                 Batches batches)
    : settings_(settings),
      run_(run),
      corpus_(corpus),
      files_(files),
      model_(options, at::TensorOptions(at::kMeta).dtype(settings.master_type())),
      batches_(std::move(batches)),
      schedule_(ScheduleOf(settings)) {
  std::vector<std::int32_t> tokens = KnownTokens(*corpus.tokenizer, settings.sample_prompt);
  if (tokens.empty()) tokens = {corpus.text.train.front()};
  prompt_tokens_.assign(tokens.begin(), tokens.end());
  prompt_ = corpus.tokenizer->Decode(tokens).value_or("");
}

absl::StatusOr<std::unique_ptr<GptTask>> GptTask::Make(const GptSettings& settings, const Run& run,
                                                       const Corpus& corpus,
                                                       const std::optional<gpt::HuggingFaceGpt2>& files) {
  PLAIT_ASSIGN_OR_RETURN(const gpt::GptOptions options, OptionsOf(settings, run, corpus, files));
  PLAIT_ASSIGN_OR_RETURN(BlockBatches train, BatchesOf(settings, run, corpus.text.train, "train"));
  PLAIT_ASSIGN_OR_RETURN(BlockBatches estimated, BatchesOf(settings, run, corpus.text.train, "training"));
  PLAIT_ASSIGN_OR_RETURN(BlockBatches validation,
                         BatchesOf(settings, run, corpus.text.validation, "validation"));
  return std::unique_ptr<GptTask>(
      new GptTask(settings, run, corpus, files, options,
                  {std::move(train), std::move(estimated), std::move(validation)}));
}

training::TrainedModel GptTask::model() {
  // Of a checked policy; a wrong one is reported where the model is sharded.
  const std::int64_t repeated = training::CheckpointedBlocks(settings_, model_).value_or(0);
  const auto element = static_cast<std::int64_t>(c10::elementSize(settings_.compute_type()));
  training::TrainedModel trained = {
      .model = &model_,
      .optimizer = {.lr = settings_.learning_rate,
                    .beta1 = settings_.beta1,
                    .beta2 = settings_.beta2,
                    .weight_decay = settings_.weight_decay},
      .clip_norm = settings_.grad_clip,
      .activation_bytes_per_sample = ActivationBytesPerSample(model_.options(), element, repeated)};
  if (files_.has_value() && !run_.checkpoint.has_value()) {
    trained.initialize = [this](std::size_t unit) {
      return base::Prefixed(files_->ReadUnit(model_, unit), "--init-from");
    };
  }
  return trained;
}

training::NamedValues GptTask::facts() const {
  return {{"vocabulary", absl::StrFormat("%08x", corpus_.text.tokenizer_digest)},
          {"training_tokens", absl::StrCat(corpus_.text.train.size())}};
}

std::string GptTask::Position() const { return absl::StrCat("after step ", step_); }

training::MicroBatch GptTask::Next(int) {
  return {.batch = batches_.train.Next(), .nominal_count = settings_.TokensPerStep(run_.data.size())};
}

absl::Status GptTask::BeforeFirstStep() {
  if (!settings_.EvaluatesAt(0)) return absl::OkStatus();
  if (settings_.sample_tokens > 0 && prompt_ != settings_.sample_prompt) {
    run_.log.Warning("--sample-prompt: characters outside the vocabulary are dropped");
  }
  Losses losses;
  return Evaluate(&losses);
}

absl::Status GptTask::EndStep(const training::StepReport& report, bool evaluates) {
  step_ = report.step;
  const double begin = NowSeconds();
  const std::int64_t tokens = settings_.TokensPerStep(run_.data.size());
  StepNumbers numbers = {.report = report,
                         .samples = tokens / settings_.block_size,
                         .tokens = tokens,
                         .ranks = run_.data.size()};
  numbers.mfu_percent =
      MfuPercent(gpt::FlopsPerToken(model_.options(), settings_.block_size),
                 static_cast<double>(tokens) / numbers.ranks, report.dt_seconds, peak_flops_);
  if (evaluates) PLAIT_RETURN_IF_ERROR(Evaluate(&numbers.losses.emplace()));
  if (step_ % settings_.log_interval == 0 || evaluates) run_.log.Info(StepLine(numbers));
  return Record(numbers, evaluates ? NowSeconds() - begin : 0);
}

double GptTask::MeanLoss(const std::string& label, BlockBatches& batches) {
  batches.Rewind();
  const std::vector<double> sums =
      trainer_->Evaluate(label, settings_.eval_iters, 2, [&](std::int64_t, training::DeviceSums& sum) {
        const models::LossSum loss = trainer_->model().Loss(batches.Next());
        sum.Add(0, loss.sum);
        sum.Add(1, loss.count);
      });
  return sums[0] / sums[1];
}

// The same seed and step draw the same tokens, on every rank.
absl::StatusOr<std::string> GptTask::Sample() {
  const at::NoGradGuard no_grad;
  sampling::Sampler sampler(
      {.temperature = 0.8,
       .top_k = 200,
       .seed = base::DeriveSeed(settings_.seed, "sample", static_cast<std::uint64_t>(step_))});
  absl::StatusOr<std::vector<std::int64_t>> tokens;
  model_.SetTraining(false);
  trainer_->model().Forward([&](const models::BlockRunner& blocks) {
    tokens = sampling::Generate({model_, model_.options().block_size}, prompt_tokens_,
                                settings_.sample_tokens, sampler, {}, blocks);
  });
  model_.SetTraining(true);
  PLAIT_RETURN_IF_ERROR(run_.world.Agree(tokens.status()));
  const std::vector<std::int32_t> ids(tokens->begin(), tokens->end());
  return prompt_ + corpus_.tokenizer->Decode(ids).value_or("");
}

absl::Status GptTask::Evaluate(Losses* losses) {
  const double begin = NowSeconds();
  losses->train = MeanLoss("training loss", batches_.estimated_train);
  losses->validation = MeanLoss("validation loss", batches_.estimated_validation);
  const double estimated = NowSeconds();
  if (settings_.sample_tokens > 0) {
    PLAIT_ASSIGN_OR_RETURN(const std::string sample, Sample());
    run_.log.Info(absl::StrCat("['prompt']: '", prompt_, "'"));
    run_.log.Info(absl::StrCat("['response']:\n\n", sample, "\n"));
  }
  run_.log.Info(absl::StrFormat(
      "estimates after step %d: train_loss=%.6f val_loss=%.6f, 2 x %d batches in %.6f s, sample in %.6f s "
      "(in no step's dt)",
      step_, losses->train, losses->validation, settings_.eval_iters, estimated - begin,
      NowSeconds() - estimated));
  return absl::OkStatus();
}

void GptTask::Save(parallel::CheckpointState& state) const {
  KeepModel({.options = model_.options(),
             .tokenizer = settings_.tokenizer,
             .tokenizer_digest = corpus_.text.tokenizer_digest,
             .code_points = corpus_.text.code_points},
            state);
  const data::BlockSamplerState sampler = batches_.train.state();
  state.integers["sampler.seed"] = static_cast<std::int64_t>(sampler.seed);
  state.integers["sampler.tokens"] = sampler.tokens;
  state.integers["sampler.position"] = sampler.position;
}

absl::Status GptTask::Restore(const parallel::Checkpoint& checkpoint) {
  data::BlockSamplerState sampler;
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t seed, checkpoint.Integer("sampler.seed"));
  sampler.seed = static_cast<std::uint64_t>(seed);
  PLAIT_ASSIGN_OR_RETURN(sampler.tokens, checkpoint.Integer("sampler.tokens"));
  PLAIT_ASSIGN_OR_RETURN(sampler.position, checkpoint.Integer("sampler.position"));
  step_ = checkpoint.step();
  return base::Prefixed(batches_.train.Restore(sampler), "--data");
}

std::vector<training::Recorded> GptTask::metrics() const {
  std::vector<training::Recorded> metrics = {
      {{"step", "1", "steps done"}},
      {{"loss", "1", "cross entropy of the whole batch"}},
      {{"dt", "s", "time per step"}, RankStatistics::kEachRank},
      {{"dtf", "s", "forward passes and losses"}, RankStatistics::kEachRank},
      {{"dtb", "s", "backward passes, reductions and optimizer"}, RankStatistics::kEachRank},
      {{"dto", "s", "optimizer and what it waits for"}, RankStatistics::kStatistics},
      {{"sps", "1/s", "samples per second of all ranks"}},
      {{"tps", "1/s", "tokens per second of all ranks"}},
      {{"mfu", "percent", "model flops utilization"}, RankStatistics::kStatistics},
      {{"lr", "1", "learning rate"}},
      {{"gradient_norm", "1", "2-norm of all gradients, before clipping"}},
      {{"train_loss", "1", "estimate on training text, after the step"}},
      {{"val_loss", "1", "estimate on validation text, after the step"}},
      {{"dt_eval", "s", "estimates and sample after the step, not in dt"}, RankStatistics::kStatistics}};
  for (const AxisMetrics& m : kAxisMetrics) {
    metrics.push_back({{m.bytes, "bytes", "sent by a rank"}, RankStatistics::kStatistics});
    metrics.push_back({{m.in_flight, "s", "collectives in flight, added up"}, RankStatistics::kStatistics});
    metrics.push_back({{m.exposed, "s", "of that, a rank stood still"}, RankStatistics::kStatistics});
  }
  return metrics;
}

absl::Status GptTask::Record(const StepNumbers& n, double evaluation_seconds) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<data::Scalar> scalars = {{"step", static_cast<double>(n.report.step)},
                                       {"loss", n.report.loss},
                                       {"dt", n.report.dt_seconds},
                                       {"dtf", n.report.forward_seconds},
                                       {"dtb", n.report.backward_seconds},
                                       {"dto", n.report.optimizer_seconds},
                                       {"sps", n.samples_per_second()},
                                       {"tps", n.tokens_per_second()},
                                       {"mfu", n.mfu_percent},
                                       {"lr", n.report.learning_rate},
                                       {"gradient_norm", n.report.gradient_norm},
                                       {"train_loss", n.losses ? n.losses->train : kNone},
                                       {"val_loss", n.losses ? n.losses->validation : kNone},
                                       {"dt_eval", evaluation_seconds}};
  for (const AxisMetrics& m : kAxisMetrics) {
    const auto found = n.report.traffic.find(m.axis);
    const training::AxisTraffic traffic =
        found == n.report.traffic.end() ? training::AxisTraffic() : found->second;
    scalars.push_back({m.bytes, traffic.bytes});
    scalars.push_back({m.in_flight, traffic.in_flight_seconds});
    scalars.push_back({m.exposed, traffic.exposed_seconds});
  }
  return trainer_->Record(scalars);
}

training::HistoryPlots GptTask::plots() const {
  return {.x = "step",
          .skips_nan = true,
          .plots = {{"dt"},
                    {"dtf"},
                    {"dtb"},
                    {"sps"},
                    {"tps"},
                    {.name = "loss", .metrics = {"loss", "train_loss", "val_loss"}}}};
}

}  // namespace plait::gpt_training
