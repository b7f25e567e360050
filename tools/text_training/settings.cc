#include "tools/text_training/settings.h"

#include <cmath>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/path.h"
#include "base/status_macros.h"

namespace plait::text_training {
namespace {

using training::AtLeast;
using training::Fraction;
using training::OnResume;

absl::Status Invalid(const std::string& line) { return absl::InvalidArgumentError(line); }

absl::Status CheckRun(const TextSettings& s) {
  PLAIT_RETURN_IF_ERROR(training::OneOf("tokenizer", s.tokenizer, {"characters", "gpt2", "sentencepiece"}));
  PLAIT_RETURN_IF_ERROR(
      training::OneOf("ignore-targets", s.ignore_targets, {"none", "documents", "prompts"}));
  PLAIT_RETURN_IF_ERROR(AtLeast("eval-interval", s.eval_interval, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("eval-iters", s.eval_iters, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("log-interval", s.log_interval, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("sample-tokens", s.sample_tokens, 0));
  if (s.draws_random_tokens() && s.ignore_targets != "none") {
    return Invalid(absl::StrCat("--ignore-targets=", s.ignore_targets, ": random tokens have no documents"));
  }
  double flops = 0;
  if (s.peak_flops != "none" && s.peak_flops != "measure" &&
      !(absl::SimpleAtod(s.peak_flops, &flops) && flops > 0)) {
    return Invalid(
        absl::StrCat("--peak-flops=", s.peak_flops, ": expected a number such as 312e12, measure or none"));
  }
  return absl::OkStatus();
}

}  // namespace

void TextSettings::BindText(training::SettingsTable& table, const std::string& data_help,
                            const std::string& model) {
  table.Group("Text");
  table.Add("data", &data, data_help);
  table.Add("tokenizer", &tokenizer,
            "characters; or of --bpe-folder: gpt2 (byte pairs), sentencepiece (Llama's)", OnResume::kSame);
  table.Add("bpe_folder", &bpe_folder,
            "directory with GPT-2's vocab.json and merges.txt, or with tokenizer.model (SentencePiece)");
  table.Add("ignore_targets", &ignore_targets,
            "targets that do not count, of token files with an index: documents: the first token of each; "
            "prompts: these "
            "and prompts (prepare_text --prompt-key); none",
            OnResume::kSame);
  table.Add("prepare_only", &prepare_only, "prepares the text, reports what it has, and exits");
  table.Group("Training");
  table.Add("max_iters", &max_iters, "number of training steps", OnResume::kAdopt);
  BindBatch(table, "sequences");
  optimizer.Bind(table);
  BindParallel(table);
  table.Group("Evaluation and report");
  table.Add("eval_interval", &eval_interval, "estimate losses and print a sample every N steps; 0: never",
            OnResume::kAdopt);
  table.Add("eval_iters", &eval_iters, "batches per estimate", OnResume::kAdopt);
  table.Add("log_interval", &log_interval, "log every N steps");
  table.Add("sample_prompt", &sample_prompt, "prompt of samples");
  table.Add("sample_tokens", &sample_tokens, "tokens per sample; 0: no samples");
  table.Add("peak_flops", &peak_flops,
            "floating-point operations per second of a rank, for mfu: a number, measure (the fastest matrix "
            "product of half a "
            "second), or none");
  BindFiles(table, "steps");
  table.Add("init_from", &init_from,
            absl::StrCat("scratch, resume (from --checkpoint-dir), or a directory with ", model,
                         " in Hugging Face's layout"));
  table.Add("save_model", &save_model,
            "directory to write the trained model to, in Hugging Face's layout; empty: not written");
}

void TextSettings::Complete(const std::vector<comm::MeshAxis>&) {
  if (init_from == "resume" && !(resume.empty() && checkpoint_dir.empty())) {  // as --resume from now on
    if (resume.empty()) resume = checkpoint_dir;
    init_from = "scratch";
  }
  if (bpe_folder.empty()) bpe_folder = initial_model();
}

std::vector<std::string> TextSettings::DerivedFlags(const std::vector<comm::MeshAxis>& axes) const {
  std::vector<std::string> derived = Settings::DerivedFlags(axes);
  if (bpe_folder == initial_model()) derived.push_back("bpe_folder");
  return derived;
}

absl::Status TextSettings::CheckGiven(const training::SettingsTable& table) const {
  PLAIT_RETURN_IF_ERROR(optimizer.CheckGiven(table));
  return Settings::CheckGiven(table);
}

absl::Status TextSettings::CheckStart() const {
  if (init_from == "resume" && resume.empty()) {
    return Invalid("--init-from=resume: expected --resume=DIR or --checkpoint-dir=DIR");
  }
  if (!resume.empty() && resume != "auto" && !initial_model().empty()) {
    return Invalid("--resume and --init-from are mutually exclusive: leave one out");
  }
  return Settings::CheckStart();
}

absl::Status TextSettings::CheckText(const std::vector<comm::MeshAxis>& axes) const {
  PLAIT_RETURN_IF_ERROR(AtLeast(SequenceFlag().c_str(), sequence, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("max-iters", max_iters, 0));
  PLAIT_RETURN_IF_ERROR(optimizer.Check());
  PLAIT_RETURN_IF_ERROR(optimizer.CheckPlaces(axes, offload));
  PLAIT_RETURN_IF_ERROR(CheckRun(*this));
  PLAIT_RETURN_IF_ERROR(CheckTokens(axes, absl::StrCat("--", SequenceFlag(), "=", sequence), sequence,
                                    sample_tokens > 0 ? "samples (--sample-tokens=0: none)" : ""));
  return CheckShared(axes);
}

data::IgnoredTargets TextSettings::IgnoredTargets() const {
  if (ignore_targets == "documents") return data::IgnoredTargets::kDocuments;
  return ignore_targets == "prompts" ? data::IgnoredTargets::kPrompts : data::IgnoredTargets::kNone;
}

std::string TextSettings::SequenceFlag() const { return absl::StrReplaceAll(sequence_flag, {{"_", "-"}}); }

models::ModelSizes TextSettings::Sizes() const {
  if (!initial_model().empty()) return {};  // those of its files
  return std::visit([](const auto& options) { return SizesOf(options); }, Options(/*vocabulary_size=*/1));
}

std::string TextSettings::initial_model() const {
  return init_from == "scratch" || init_from == "resume" ? "" : base::FromUser(init_from);
}

std::int64_t TextSettings::TokensPerStep(int data_ranks) const {
  return GlobalBatch(data_ranks) * sequence * gradient_accumulation_steps;
}

bool TextSettings::EvaluatesAt(std::int64_t step) const {
  return eval_interval > 0 && (step % eval_interval == 0 || step == max_iters);
}

}  // namespace plait::text_training
