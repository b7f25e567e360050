#include "tools/gpt_training/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "base/seed.h"
#include "base/status_macros.h"
#include "models/gpt/sampler.h"

namespace plait::gpt_training {
namespace {

absl::StatusOr<BlockBatches> BatchesOf(const Config& config, const std::vector<std::uint16_t>& tokens,
                                       const std::string& name, const comm::Communicator& world) {
  absl::StatusOr<BlockBatches> batches =
      BlockBatches::Make({.tokens = tokens,
                          .name = name,
                          .block_size = config.block_size,
                          .batch_size = GlobalBatchSize(config, world.size()),
                          .seed = config.seed,
                          .rank = world.rank(),
                          .ranks = world.size()});
  PLAIT_RETURN_IF_ERROR(base::Prefixed(batches.status(), "--block-size"));
  return batches;
}

// Without dropout while it lives.
class EvaluationMode {
 public:
  explicit EvaluationMode(const gpt::Gpt& model) : model_(model) { model_.SetTraining(false); }
  ~EvaluationMode() { model_.SetTraining(true); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  const gpt::Gpt& model_;
  at::NoGradGuard no_grad_;
};

// What of the text the tokenizer has ids for: UTF-8 characters that it has none for are left out.
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

Evaluation::Evaluation(const Config& config, const Corpus& corpus, const comm::Communicator& world,
                       BlockBatches train, BlockBatches validation)
    : config_(config),
      corpus_(corpus),
      world_(world),
      train_(std::move(train)),
      validation_(std::move(validation)) {
  std::vector<std::int32_t> tokens = KnownTokens(*corpus.tokenizer, config.sample_prompt);
  if (tokens.empty()) tokens = {corpus.text.train.front()};
  prompt_tokens_.assign(tokens.begin(), tokens.end());
  prompt_ = corpus.tokenizer->Decode(tokens).value_or("");
}

absl::StatusOr<Evaluation> Evaluation::Make(const Config& config, const Corpus& corpus,
                                            const comm::Communicator& world) {
  PLAIT_ASSIGN_OR_RETURN(BlockBatches train, BatchesOf(config, corpus.text.train, "training", world));
  PLAIT_ASSIGN_OR_RETURN(BlockBatches validation,
                         BatchesOf(config, corpus.text.validation, "validation", world));
  return Evaluation(config, corpus, world, std::move(train), std::move(validation));
}

double Evaluation::MeanLoss(ShardedGpt& sharded, BlockBatches& batches) {
  batches.Rewind();
  double mean[1] = {0};
  for (std::int64_t k = 0; k < config_.eval_iters; ++k) {
    const BlockBatch batch = batches.Next();
    const at::Tensor loss =
        sharded.engine().Forward([&] { return sharded.model().Loss(batch.inputs, batch.targets); });
    mean[0] += loss.item<double>() * batch.share / static_cast<double>(config_.eval_iters);
  }
  world_.AllReduce(comm::BufferOf(absl::MakeSpan(mean)), comm::ReduceOp::kSum);
  return mean[0];
}

Losses Evaluation::Estimate(ShardedGpt& sharded) {
  const EvaluationMode mode(sharded.model());
  Losses losses;
  losses.train = MeanLoss(sharded, train_);
  losses.validation = MeanLoss(sharded, validation_);
  return losses;
}

absl::StatusOr<std::string> Evaluation::Sample(ShardedGpt& sharded, std::int64_t step) {
  const EvaluationMode mode(sharded.model());
  gpt::Sampler sampler({.temperature = 0.8,
                        .top_k = 200,
                        .seed = base::DeriveSeed(config_.seed, "sample", static_cast<std::uint64_t>(step))});
  absl::StatusOr<std::vector<std::int64_t>> tokens;
  sharded.engine().Forward([&] {
    tokens = gpt::Generate(sharded.model(), prompt_tokens_, config_.sample_tokens, sampler);
    return at::zeros({});
  });
  PLAIT_RETURN_IF_ERROR(tokens.status());
  const std::vector<std::int32_t> ids(tokens->begin(), tokens->end());
  return prompt_ + corpus_.tokenizer->Decode(ids).value_or("");
}

}  // namespace plait::gpt_training
