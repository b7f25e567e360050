#include "tools/text_training/text_task.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "comm/tensor_collectives.h"
#include "tools/text_training/flops.h"
#include "tools/training/resume.h"

namespace plait::text_training {
namespace {

using training::Run;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// The report of step 0, before training.
constexpr training::StepReport kNoStep = {.step = 0,
                                          .loss = kNone,
                                          .count = 0,
                                          .dt_seconds = kNone,
                                          .forward_seconds = kNone,
                                          .backward_seconds = kNone,
                                          .optimizer_seconds = kNone,
                                          .slowest_seconds = kNone,
                                          .learning_rate = kNone,
                                          .gradient_norm = kNone};

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::StatusOr<BlockBatches> BatchesOf(const TextSettings& settings, const Run& run, const Corpus& corpus,
                                       const data::TokenPart& text, const std::string& name) {
  const int ranks = run.data.size();
  const std::int64_t batch =
      settings.leaves() > 0 ? settings.StepSamples(ranks) : settings.GlobalBatch(ranks);
  absl::StatusOr<BlockBatches> batches = BlockBatches::Make(
      text, {.block_size = settings.sequence, .batch_size = batch, .seed = settings.seed, .name = name},
      run.data.rank(), run.data.size(), settings.leaves(),
      {.vocabulary = corpus.text.vocabulary_size, .ignored = settings.IgnoredTargets()});
  PLAIT_RETURN_IF_ERROR(base::Prefixed(batches.status(), absl::StrCat("--", settings.SequenceFlag())));
  return batches;
}

// The tokens of the text; UTF-8 characters outside the vocabulary are dropped.
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

training::TrainedModel TrainedOf(const TextSettings& settings, const ModelOptions& options,
                                 models::BlockModel* model) {
  return {.model = model,
          .optimizer = settings.optimizer.Options(),
          .clip_norm = settings.optimizer.grad_clip,
          .attention_heads = HeadsOf(options)};
}

}  // namespace

training::MakeDryRunModel DryRunModelOf(const TextSettings& settings, const ModelOptions& options) {
  return [&settings, options](std::int64_t samples) -> absl::StatusOr<training::DryRunModel> {
    const auto tokens = [&] {
      return at::empty({samples, settings.sequence}, at::device(at::kMeta).dtype(at::kLong));
    };
    const std::shared_ptr<models::BlockModel> model =
        MakeModel(options, at::device(at::kMeta).dtype(settings.master_type()));
    return training::DryRunModel{
        .model = model, .trained = TrainedOf(settings, options, model.get()), .batch = {tokens(), tokens()}};
  };
}

TextTask::TextTask(const TextSettings& settings, const Run& run, const Corpus& corpus,
                   const ModelOptions& options, const std::optional<InitialModel>& files, StepOutput output,
                   Batches batches)
    : settings_(settings),
      run_(run),
      corpus_(corpus),
      files_(files),
      options_(options),
      output_(std::move(output)),
      model_(MakeModel(options, at::TensorOptions(at::kMeta).dtype(settings.master_type()))),
      batches_(std::move(batches)),
      schedule_(settings.optimizer.Schedule()) {
  if (corpus.tokenizer != nullptr) FindPrompt();
  if (files.has_value()) special_ = files->special;
}

void TextTask::FindPrompt() {
  std::vector<std::int32_t> tokens = KnownTokens(*corpus_.tokenizer, settings_.sample_prompt);
  if (tokens.empty()) tokens = {static_cast<std::int32_t>(corpus_.train().tokens[0])};
  prompt_tokens_.assign(tokens.begin(), tokens.end());
  prompt_ = corpus_.tokenizer->Decode(tokens).value_or("");
}

absl::StatusOr<std::unique_ptr<TextTask>> TextTask::Make(const TextSettings& settings, const Run& run,
                                                         const Corpus& corpus, const ModelOptions& options,
                                                         const std::optional<InitialModel>& files,
                                                         StepOutput output) {
  PLAIT_ASSIGN_OR_RETURN(BlockBatches train, BatchesOf(settings, run, corpus, corpus.train(), "train"));
  PLAIT_ASSIGN_OR_RETURN(BlockBatches estimated,
                         BatchesOf(settings, run, corpus, corpus.train(), "training"));
  PLAIT_ASSIGN_OR_RETURN(BlockBatches validation,
                         BatchesOf(settings, run, corpus, corpus.validation(), "validation"));
  return std::unique_ptr<TextTask>(
      new TextTask(settings, run, corpus, options, files, std::move(output),
                   {std::move(train), std::move(estimated), std::move(validation)}));
}

training::TrainedModel TextTask::model() {
  training::TrainedModel trained = TrainedOf(settings_, options_, model_.get());
  if (files_.has_value() && !run_.checkpoint.has_value()) {
    trained.initialize = [this](std::size_t unit) {
      return base::Prefixed(files_->weights->ReadUnit(*model_, unit), "--init-from");
    };
  }
  return trained;
}

training::MakeDryRunModel TextTask::dry_run_model() { return DryRunModelOf(settings_, options_); }

// Of texts the settings name the file.
std::string TextTask::data() const {
  return settings_.draws_random_tokens() ? "synthetic: random tokens, no text" : "";
}

training::NamedValues TextTask::facts() const {
  const data::Tokens tokens = corpus_.train().tokens;
  return {{"vocabulary", absl::StrFormat("%08x", corpus_.text.tokenizer_digest)},
          {"training_tokens", absl::StrCat(tokens.size())},
          {"training_tokens_crc32",
           training::DigestOf(tokens.size(), [&](std::int64_t i) { return tokens[i]; })}};
}

training::NamedValues TextTask::shared_facts() const {
  const data::Tokens tokens = corpus_.validation().tokens;
  return {{"validation_tokens", absl::StrCat(tokens.size())},
          {"validation_tokens_crc32",
           training::DigestOf(tokens.size(), [&](std::int64_t i) { return tokens[i]; })}};
}

training::TaskProgress TextTask::progress() const {
  return {absl::StrCat("step ", step_ + 1, " of ", settings_.max_iters), step_, settings_.max_iters};
}

std::string TextTask::Position() const { return absl::StrCat("after step ", step_); }

training::MicroBatch TextTask::Next(int) {
  return {.batch = batches_.train.Next(), .nominal_count = settings_.TokensPerStep(run_.data.size())};
}

absl::Status TextTask::BeforeFirstStep() {
  if (!settings_.checkpoint_dir.empty() && settings_.checkpoint_interval == 0 &&
      settings_.eval_interval == 0) {
    run_.log.Info(
        "checkpoints only at the end and at signals: --checkpoint-interval=N saves every N steps, and "
        "without it "
        "evaluations do, of which --eval-interval=0 has none");
  }
  if (!settings_.EvaluatesAt(0)) return absl::OkStatus();
  if (samples() && !corpus_.tokenizer->Encode(settings_.sample_prompt).ok()) {
    run_.log.Warning("--sample-prompt: characters outside the vocabulary are dropped");
  }
  const double begin = NowSeconds();
  StepNumbers numbers = {.report = kNoStep, .ranks = run_.world.size(), .mfu_percent = kNone};
  PLAIT_RETURN_IF_ERROR(Evaluate(&numbers.losses.emplace()));
  numbers.evaluation_seconds = NowSeconds() - begin;
  return trainer_->Record(output_.scalars(numbers));
}

// Collective. An error on all ranks if any rank has read a token outside the vocabulary.
absl::Status TextTask::AgreeOnTokens() const {
  if (!corpus_.files) return absl::OkStatus();
  absl::Status status;
  for (const BlockBatches* batches :
       {&batches_.train, &batches_.estimated_train, &batches_.estimated_validation}) {
    status.Update(batches->status());
  }
  return base::Prefixed(run_.world.Agree(status), "--data");
}

absl::Status TextTask::EndStep(const training::StepReport& report, bool evaluates) {
  PLAIT_RETURN_IF_ERROR(AgreeOnTokens());
  step_ = report.step;
  const double begin = NowSeconds();
  const std::int64_t tokens = settings_.TokensPerStep(run_.data.size());
  StepNumbers numbers = {
      .report = report, .samples = tokens / settings_.sequence, .tokens = tokens, .ranks = run_.world.size()};
  numbers.mfu_percent =
      MfuPercent(FlopsPerToken(options_, settings_.sequence), static_cast<double>(tokens) / numbers.ranks,
                 report.dt_seconds, peak_flops_);
  const absl::Status evaluated = evaluates ? Evaluate(&numbers.losses.emplace()) : absl::OkStatus();
  if (!evaluated.ok()) numbers.losses.reset();
  if (step_ % settings_.log_interval == 0 || evaluates) run_.log.Info(output_.line(numbers));
  numbers.evaluation_seconds = evaluates ? NowSeconds() - begin : 0;
  PLAIT_RETURN_IF_ERROR(trainer_->Record(output_.scalars(numbers)));
  return evaluated.ok() ? evaluated : trainer_->SaveBefore(evaluated);
}

double TextTask::MeanLoss(const std::string& label, BlockBatches& batches) {
  batches.Rewind();
  // Parts of each batch on this rank.
  const std::int64_t parts = settings_.leaves() > 0 ? settings_.MicroBatches(run_.data.size()) : 1;
  const std::vector<double> sums = trainer_->Evaluate(
      label, settings_.eval_iters * parts, 2, [&](std::int64_t, training::DeviceSums& sum) {
        const models::LossSum loss = trainer_->model().Loss(batches.Next());
        sum.Add(0, loss.sum);
        sum.Add(1, loss.count);
      });
  if (sums[1] > 0) return sums[0] / sums[1];
  run_.log.Warning(absl::StrCat(label, ": no estimate: all targets of its ", settings_.eval_iters,
                                " batches are ignored (--ignore-targets=", settings_.ignore_targets,
                                "); expected more of them, --eval-iters or --batch-size"));
  return kNone;
}

// Deterministic in seed and step, and the same on every rank.
absl::StatusOr<std::string> TextTask::Sample() {
  const at::NoGradGuard no_grad;
  const training::BarScope bar(run_.console, "sample");
  sampling::Sampler sampler(
      {.temperature = 0.8,
       .top_k = 200,
       .seed = base::DeriveSeed(settings_.seed, "sample", static_cast<std::uint64_t>(step_))});
  absl::StatusOr<std::vector<std::int64_t>> tokens;
  model_->SetTraining(false);
  const bool splits_tokens =
      settings_.sequence_parallel && run_.mesh.Has("tp") && run_.mesh.axis("tp").size() > 1;
  if (!trainer_->model().has_all_blocks() || splits_tokens) {
    tokens = SampleByPasses(sampler);
  } else {
    trainer_->model().Forward([&](const models::BlockRunner& blocks) {
      tokens = sampling::Generate({*model_, settings_.sequence}, prompt_tokens_, settings_.sample_tokens,
                                  sampler, {}, blocks);
    });
  }
  model_->SetTraining(true);
  PLAIT_RETURN_IF_ERROR(run_.world.Agree(tokens.status()));
  std::vector<std::int32_t> ids(tokens->begin(), tokens->end());
  // --vocab-size may be above the vocabulary's: such tokens have no text.
  std::erase_if(ids, [&](std::int32_t id) { return id >= corpus_.tokenizer->vocabulary_size(); });
  return prompt_ + corpus_.tokenizer->Decode(ids).value_or("");
}

// For models that no rank can run with a key-value cache (stages, layer-parallel, sequence parallelism): each token
// costs a forward pass over a sequence of training length, padded at the end, which causal attention ignores.
absl::StatusOr<std::vector<std::int64_t>> TextTask::SampleByPasses(sampling::Sampler& sampler) {
  const auto logits = [&](absl::Span<const std::int64_t> context) {
    at::Tensor inputs = at::zeros({1, settings_.sequence}, at::kLong);
    std::copy(context.begin(), context.end(), inputs.mutable_data_ptr<std::int64_t>());
    const at::Tensor output = trainer_->model().Output({.inputs = inputs, .targets = {}});
    // Only the last stage has an output.
    at::Tensor last = at::zeros({VocabularyOf(options_)}, at::kDouble);
    if (output.defined())
      last.copy_(output.select(1, static_cast<std::int64_t>(context.size()) - 1).flatten());
    comm::AllReduce(run_.mesh.axis("pp"), last);
    return last;
  };
  return sampling::Generate(logits, settings_.sequence, prompt_tokens_, settings_.sample_tokens, sampler);
}

absl::Status TextTask::Evaluate(Losses* losses) {
  const double begin = NowSeconds();
  losses->train = MeanLoss("training loss", batches_.estimated_train);
  losses->validation = MeanLoss("validation loss", batches_.estimated_validation);
  PLAIT_RETURN_IF_ERROR(AgreeOnTokens());
  const double estimated = NowSeconds();
  if (samples()) {
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

SavedModel TextTask::saved_model() const {
  return {.options = options_,
          .tokenizer = corpus_.TokenizerName(),
          .tokenizer_digest = corpus_.text.tokenizer_digest,
          .code_points = corpus_.text.code_points,
          .special = SpecialTokensOf(corpus_.tokenizer.get(), special_)};
}

void TextTask::Save(parallel::CheckpointState& state) const {
  KeepModel(saved_model(), state);
  const data::BlockSamplerState sampler = batches_.train.state();
  state.integers["sampler.seed"] = static_cast<std::int64_t>(sampler.seed);
  state.integers["sampler.tokens"] = sampler.tokens;
  state.integers["sampler.position"] = sampler.position;
}

absl::Status TextTask::Restore(const parallel::Checkpoint& checkpoint) {
  PLAIT_ASSIGN_OR_RETURN(const SavedModel saved, SavedModelOf(checkpoint));
  special_ = saved.special;
  data::BlockSamplerState sampler;
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t seed, checkpoint.Integer("sampler.seed"));
  sampler.seed = static_cast<std::uint64_t>(seed);
  PLAIT_ASSIGN_OR_RETURN(sampler.tokens, checkpoint.Integer("sampler.tokens"));
  PLAIT_ASSIGN_OR_RETURN(sampler.position, checkpoint.Integer("sampler.position"));
  step_ = checkpoint.step();
  return base::Prefixed(batches_.train.Restore(sampler), "--data");
}

}  // namespace plait::text_training
