#include "tools/gpt_training/config.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "parallel/sharding/strategy.h"

namespace plait::gpt_training {
namespace {

absl::Status Invalid(const std::string& line) { return absl::InvalidArgumentError(line); }

absl::Status AtLeast(const char* flag, double value, double least) {
  if (value >= least) return absl::OkStatus();
  return Invalid(absl::StrCat("--", flag, "=", value, ": must be at least ", least));
}

absl::Status Positive(const char* flag, double value) {
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return Invalid(absl::StrCat("--", flag, "=", value, ": must be a positive number"));
}

// At least 0 and below 1.
absl::Status Fraction(const char* flag, double value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return Invalid(absl::StrCat("--", flag, "=", value, ": must be at least 0 and below 1"));
}

absl::Status OneOf(const char* flag, const std::string& value, const std::vector<std::string>& choices) {
  for (const std::string& choice : choices) {
    if (value == choice) return absl::OkStatus();
  }
  return Invalid(absl::StrCat("--", flag, "=", value, ": expected ", absl::StrJoin(choices, " or ")));
}

absl::Status CheckModel(const Config& c) {
  PLAIT_RETURN_IF_ERROR(AtLeast("n-layer", c.n_layer, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("n-head", c.n_head, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("n-embd", c.n_embd, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("block-size", c.block_size, 1));
  PLAIT_RETURN_IF_ERROR(Fraction("dropout", c.dropout));
  if (c.n_embd % c.n_head == 0) return absl::OkStatus();
  return Invalid(absl::StrCat("--n-embd=", c.n_embd, ": must be a multiple of --n-head=", c.n_head));
}

absl::Status CheckOptimizer(const Config& c) {
  PLAIT_RETURN_IF_ERROR(AtLeast("max-iters", c.max_iters, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("gradient-accumulation-steps", c.gradient_accumulation_steps, 1));
  PLAIT_RETURN_IF_ERROR(Positive("learning-rate", c.learning_rate));
  PLAIT_RETURN_IF_ERROR(AtLeast("min-lr", c.min_lr, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("warmup-iters", c.warmup_iters, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("lr-decay-iters", c.lr_decay_iters, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("weight-decay", c.weight_decay, 0));
  PLAIT_RETURN_IF_ERROR(Fraction("beta1", c.beta1));
  PLAIT_RETURN_IF_ERROR(Fraction("beta2", c.beta2));
  PLAIT_RETURN_IF_ERROR(AtLeast("grad-clip", c.grad_clip, 0));
  if (c.min_lr <= c.learning_rate) return absl::OkStatus();
  return Invalid(absl::StrCat("--min-lr=", c.min_lr, ": must be at most --learning-rate=", c.learning_rate));
}

absl::Status CheckRun(const Config& c) {
  PLAIT_RETURN_IF_ERROR(OneOf("tokenizer", c.tokenizer, {"characters", "gpt2"}));
  PLAIT_RETURN_IF_ERROR(OneOf("dtype", c.dtype, {"float32", "bfloat16", "float16", "float64"}));
  PLAIT_RETURN_IF_ERROR(OneOf("strategy", c.strategy, {"ddp", "zero1", "zero2", "fsdp"}));
  PLAIT_RETURN_IF_ERROR(AtLeast("eval-interval", c.eval_interval, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("eval-iters", c.eval_iters, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("log-interval", c.log_interval, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("sample-tokens", c.sample_tokens, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("checkpoint-interval", c.checkpoint_interval, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("keep-last", c.keep_last, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("memory-limit", c.memory_limit_bytes, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("nproc", c.nproc, 0));
  PLAIT_RETURN_IF_ERROR(Positive("timeout", c.timeout_seconds));
  if (c.init_from == "resume" && c.resume.empty()) {
    return Invalid("--init-from=resume: say from which folder, with --resume or --checkpoint-dir");
  }
  if (!c.resume.empty() && c.init_from != "resume" && c.init_from != "scratch") {
    return Invalid("--resume and --init-from name two beginnings: leave one out");
  }
  if (c.checkpoint_interval > 0 && c.checkpoint_dir.empty()) {
    return Invalid("--checkpoint-interval: say into which folder, with --checkpoint-dir");
  }
  return absl::OkStatus();
}

absl::Status CheckBatch(const Config& c, int ranks) {
  PLAIT_RETURN_IF_ERROR(AtLeast("batch-size", c.batch_size, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("global-batch-size", c.global_batch_size, 0));
  if (GlobalBatchSize(c, ranks) >= ranks) return absl::OkStatus();
  return Invalid(absl::StrCat("--global-batch-size=", c.global_batch_size, ": ", ranks,
                              " ranks; expected at least one block for each"));
}

}  // namespace

absl::StatusOr<MeshShape> MeshOf(const Config& config, int ranks) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::Strategy strategy, parallel::ParseStrategy(config.strategy));
  return training_program::MeshOf(config.mesh, strategy, ranks);
}

std::int64_t GlobalBatchSize(const Config& config, int ranks) {
  return config.global_batch_size > 0 ? config.global_batch_size : config.batch_size * ranks;
}

std::int64_t MicroBatchOfRank(const Config& config, int ranks) {
  return (GlobalBatchSize(config, ranks) + ranks - 1) / ranks;
}

std::int64_t TokensPerStep(const Config& config, int ranks) {
  return GlobalBatchSize(config, ranks) * config.block_size * config.gradient_accumulation_steps;
}

bool EvaluatesAt(const Config& config, std::int64_t step) {
  return config.eval_interval > 0 && (step % config.eval_interval == 0 || step == config.max_iters);
}

bool KeepsCheckpointAt(const Config& config, std::int64_t step) {
  if (config.checkpoint_dir.empty() || step == 0) return false;
  if (step == config.max_iters) return true;
  return config.checkpoint_interval > 0 ? step % config.checkpoint_interval == 0 : EvaluatesAt(config, step);
}

absl::Status Check(const Config& config, int ranks) {
  PLAIT_RETURN_IF_ERROR(CheckModel(config));
  PLAIT_RETURN_IF_ERROR(CheckOptimizer(config));
  PLAIT_RETURN_IF_ERROR(CheckRun(config));
  PLAIT_RETURN_IF_ERROR(CheckBatch(config, ranks));
  PLAIT_ASSIGN_OR_RETURN(const parallel::Strategy strategy, parallel::ParseStrategy(config.strategy));
  PLAIT_RETURN_IF_ERROR(training_program::CheckOffload(config.offload, strategy));
  return MeshOf(config, ranks).status();
}

}  // namespace plait::gpt_training
