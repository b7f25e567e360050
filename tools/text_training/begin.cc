#include "tools/text_training/begin.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tools/text_training/flops.h"
#include "tools/text_training/saved_model.h"

namespace plait::text_training {
namespace {

using training::Run;

absl::Status Invalid(const std::string& line) { return absl::InvalidArgumentError(line); }

}  // namespace

absl::StatusOr<std::optional<InitialModel>> OpenInitialModel(const TextSettings& settings, const Run& run,
                                                             const std::string& kind) {
  const std::string folder = settings.initial_model();
  if (folder.empty() || run.checkpoint.has_value()) return std::nullopt;
  absl::StatusOr<InitialModel> files = OpenHuggingFace(folder, kind);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(run.world.Agree(files.status()), "--init-from"));
  const std::int64_t positions = PositionsOf(files->options);
  if (settings.sequence > positions) {
    return Invalid(absl::StrCat("--", settings.SequenceFlag(), "=", settings.sequence, ": the model in ",
                                folder, " has ", positions, " positions"));
  }
  if (!files->note.empty()) run.log.Warning(absl::StrCat("--init-from: ", files->note));
  return *std::move(files);
}

absl::StatusOr<Corpus> OpenText(const TextSettings& settings, const Run& run) {
  PLAIT_ASSIGN_OR_RETURN(Corpus corpus, settings.draws_random_tokens()
                                            ? RandomCorpus(settings.seed, settings.vocab_size)
                                            : OpenCorpus(settings, run.world, [&](const std::string& line) {
                                                run.log.Info(line);
                                              }));
  run.log.Info("\n" + CorpusLines(corpus));
  return corpus;
}

absl::StatusOr<ModelOptions> OptionsOf(const TextSettings& settings, const Run& run, const Corpus& corpus,
                                       const std::optional<InitialModel>& files) {
  if (run.checkpoint.has_value()) {
    PLAIT_ASSIGN_OR_RETURN(const SavedModel saved, SavedModelOf(*run.checkpoint));
    return saved.options;
  }
  const std::int64_t tokens = corpus.text.vocabulary_size;
  if (files.has_value()) {
    const std::int64_t vocabulary = VocabularyOf(files->options);
    if (vocabulary != tokens) {
      return Invalid(
          absl::StrCat("--init-from=", settings.init_from, ": the model has ", vocabulary,
                       " tokens, the text's tokenizer ", tokens,
                       "; expected the model's own: --tokenizer=gpt2 or sentencepiece with --bpe-folder, "
                       "or --data with the characters that the model was trained on"));
    }
    run.log.Info(absl::StrCat("Initializing from the model in ", settings.initial_model()));
    return files->options;
  }
  if (settings.vocab_size > 0 && settings.vocab_size < tokens) {
    return Invalid(absl::StrCat("--vocab-size=", settings.vocab_size, ": the text's tokenizer has ", tokens,
                                " tokens; give as many, or 0"));
  }
  run.log.Info("Initializing a new model from scratch");
  return settings.Options(settings.vocab_size > 0 ? settings.vocab_size : tokens);
}

double PeakFlops(const TextSettings& settings, const Run& run) {
  double peak = 0;
  if (settings.peak_flops != "measure") {
    return absl::SimpleAtod(settings.peak_flops, &peak) ? peak : 0;
  }
  run.world.Barrier();  // all ranks at once, as in training
  peak = MeasuredPeakFlops(at::TensorOptions(settings.compute_type()).device(run.device));
  run.log.Info(absl::StrFormat("measured peak of rank 0: %.1f GFLOP/s in %s", 1e-9 * peak, settings.dtype));
  return peak;
}

}  // namespace plait::text_training
