#include "tools/gpt_generation/flags.h"

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"

using plait::gpt_generation::Request;

ABSL_FLAG(std::string, checkpoint, Request().checkpoint,
          "checkpoint of train_gpt, or directory of checkpoints");
ABSL_FLAG(std::string, model, Request().model,
          "directory with GPT-2 in Hugging Face's layout: config.json, model.safetensors, vocab.json, "
          "merges.txt");
ABSL_FLAG(std::string, bpe_folder, Request().bpe_folder,
          "directory with GPT-2's vocab.json and merges.txt, if they are not with the model");
ABSL_FLAG(std::string, prompt, Request().prompt, "text that samples continue");
ABSL_FLAG(std::int64_t, max_new_tokens, Request().max_new_tokens, "tokens per sample");
ABSL_FLAG(int, num_samples, Request().num_samples, "number of samples");
ABSL_FLAG(std::string, dtype, Request().dtype, "compute dtype: float32, bfloat16 or float64");
ABSL_FLAG(double, temperature, Request().sampling.temperature,
          "logits are divided by it; 0: always the most likely token");
ABSL_FLAG(std::int64_t, top_k, Request().sampling.top_k, "sample from the k most likely tokens; 0: all");
ABSL_FLAG(double, top_p, Request().sampling.top_p,
          "sample from the most likely tokens that together reach this probability");
ABSL_FLAG(std::uint64_t, seed, Request().sampling.seed, "seed of the samples");

namespace plait::gpt_generation {
namespace {

absl::Status Check(const Request& r) {
  if (r.checkpoint.empty() == r.model.empty()) {
    return absl::InvalidArgumentError(
        "expected --checkpoint=DIR of train_gpt, or --model=DIR in Hugging Face's layout");
  }
  if (r.max_new_tokens < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-new-tokens=", r.max_new_tokens, ": must be at least 0"));
  }
  if (r.num_samples < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--num-samples=", r.num_samples, ": must be at least 1"));
  }
  if (r.dtype != "float32" && r.dtype != "bfloat16" && r.dtype != "float64") {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", r.dtype, ": expected float32, bfloat16 or float64"));
  }
  return gpt::Validate(r.sampling);
}

}  // namespace

base::ToolUsage Usage() {
  return {.name = "generate",
          .summary = "Generates text from a trained GPT.",
          .examples = {"generate --checkpoint=run --prompt='To be' --max-new-tokens=300",
                       "generate --model=gpt2 --prompt='The answer is' --temperature=0.7 --top-p=0.9"},
          .groups = {{"Model", {"checkpoint", "model", "bpe_folder", "dtype"}},
                     {"Samples", {"prompt", "max_new_tokens", "num_samples", "seed"}},
                     {"Choice of tokens", {"temperature", "top_k", "top_p"}}}};
}

absl::StatusOr<Request> RequestFromFlags() {
  Request r;
  r.checkpoint = base::FromUser(absl::GetFlag(FLAGS_checkpoint));
  r.model = base::FromUser(absl::GetFlag(FLAGS_model));
  r.bpe_folder = base::FromUser(absl::GetFlag(FLAGS_bpe_folder));
  r.prompt = absl::GetFlag(FLAGS_prompt);
  r.max_new_tokens = absl::GetFlag(FLAGS_max_new_tokens);
  r.num_samples = absl::GetFlag(FLAGS_num_samples);
  r.dtype = absl::GetFlag(FLAGS_dtype);
  r.sampling.temperature = absl::GetFlag(FLAGS_temperature);
  r.sampling.top_k = absl::GetFlag(FLAGS_top_k);
  r.sampling.top_p = absl::GetFlag(FLAGS_top_p);
  r.sampling.seed = absl::GetFlag(FLAGS_seed);
  PLAIT_RETURN_IF_ERROR(Check(r));
  return r;
}

}  // namespace plait::gpt_generation
