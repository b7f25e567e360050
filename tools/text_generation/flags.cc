#include "tools/text_generation/flags.h"

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "tools/training/settings_table.h"

namespace plait::text_generation {
namespace {

absl::Status Check(const Request& r) {
  if (r.checkpoint.empty() == r.model.empty()) {
    return absl::InvalidArgumentError(
        "expected --checkpoint=DIR of train_gpt or train_llama, or --model=DIR in Hugging Face's layout");
  }
  if (r.max_new_tokens < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-new-tokens=", r.max_new_tokens, ": must be at least 0"));
  }
  if (r.num_samples < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--num-samples=", r.num_samples, ": must be at least 1"));
  }
  if (r.batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--batch-size=", r.batch_size, ": must be at least 1"));
  }
  if (r.dtype != "float32" && r.dtype != "bfloat16" && r.dtype != "float64") {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", r.dtype, ": expected float32, bfloat16 or float64"));
  }
  return sampling::Validate(r.sampling);
}

absl::StatusOr<std::vector<std::string>> StopsOf(const std::string& list) {
  std::vector<std::string> stops;
  if (list.empty()) return stops;
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    std::string stop;
    if (!absl::CUnescape(part, &stop) || stop.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--stop=", list,
                       ": expected texts separated by commas, with escapes as in C: \\n, \\x2c for a comma"));
    }
    stops.push_back(std::move(stop));
  }
  return stops;
}

// `stops`: the list as it is given.
void Bind(Request& r, std::string& stops, training::SettingsTable& table) {
  table.Group("Model");
  table.Add("checkpoint", &r.checkpoint,
            "checkpoint of train_gpt or train_llama, or directory of checkpoints");
  table.Add("model", &r.model,
            "directory with GPT-2 or Llama in Hugging Face's layout: config.json, model.safetensors, and "
            "vocab.json with merges.txt or tokenizer.model");
  table.Add("bpe_folder", &r.bpe_folder,
            "directory with the tokenizer's files, if they are not with the model");
  table.Add("dtype", &r.dtype, "compute dtype: float32, bfloat16 or float64");
  table.Group("Samples");
  table.Add("prompt", &r.prompt, "prompt to continue");
  table.Add("prompts_file", &r.prompts_file, "file with a prompt per line, in place of --prompt");
  table.Add(
      "stop", &stops,
      "stop strings, separated by commas, with escapes as in C: '\\n\\n,User:'; samples end before them");
  table.Add(
      "ignore_end_of_text", &r.ignore_end_of_text,
      "samples go on behind an end of a text: the tokenizer's, such as GPT-2's <|endoftext|> or Llama's "
      "</s>, or one of eos_token_id in config.json");
  table.Add("max_new_tokens", &r.max_new_tokens, "maximum number of tokens per sample");
  table.Add("num_samples", &r.num_samples, "number of samples of each prompt");
  table.Add("batch_size", &r.batch_size, "samples generated together");
  table.Add("seed", &r.sampling.seed, "random seed of the samples");
  table.Group("Choice of tokens");
  table.Add("temperature", &r.sampling.temperature,
            "logits are divided by it; 0: always the most likely token");
  table.Add("top_k", &r.sampling.top_k, "sample from the k most likely tokens; 0: all");
  table.Add("top_p", &r.sampling.top_p,
            "sample from the most likely tokens that together reach this probability");
}

}  // namespace

absl::StatusOr<Request> ReadRequest(int argc, char** argv) {
  Request request;
  training::SettingsTable table;
  std::string stops;
  Bind(request, stops, table);
  base::ParseFlagsOrExit(
      argc, argv,
      table.Usage("generate", "Generates text from a trained GPT or Llama.",
                  {"generate --checkpoint=run --prompt='To be' --max-new-tokens=300",
                   "generate --checkpoint=run --prompts-file=prompts.txt --stop='\\n\\n' --batch-size=16",
                   "generate --model=gpt2 --prompt='The answer is' --temperature=0.7 --top-p=0.9"}));
  for (std::string* path :
       {&request.checkpoint, &request.model, &request.bpe_folder, &request.prompts_file}) {
    *path = base::FromUser(*path);
  }
  if (!request.prompts_file.empty() && table.Given("prompt")) {
    return absl::InvalidArgumentError("--prompts-file: expected without --prompt");
  }
  PLAIT_ASSIGN_OR_RETURN(request.stops, StopsOf(stops));
  PLAIT_RETURN_IF_ERROR(Check(request));
  return request;
}

}  // namespace plait::text_generation
