// The start of a run: model, text and peak FLOP/s. Collective; errors are the same on all ranks.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::optional<InitialModel> files, OpenInitialModel(settings, run, "llama"));
//   PLAIT_ASSIGN_OR_RETURN(const Corpus corpus, OpenText(settings, run));
//   PLAIT_ASSIGN_OR_RETURN(const ModelOptions options, OptionsOf(settings, run, corpus, files));
#ifndef PLAIT_TOOLS_TEXT_TRAINING_BEGIN_H_
#define PLAIT_TOOLS_TEXT_TRAINING_BEGIN_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/text_training/corpus.h"
#include "tools/text_training/language_model.h"
#include "tools/text_training/settings.h"
#include "tools/training/program.h"

namespace plait::text_training {

// The model of --init-from; none without --init-from or if the run resumes. INVALID_ARGUMENT for another kind of model,
// or one with fewer positions than a sequence has tokens.
absl::StatusOr<std::optional<InitialModel>> OpenInitialModel(const TextSettings& settings,
                                                             const training::Run& run,
                                                             const std::string& kind);

// The text of --data, or random tokens below settings.vocab_size. Logs its statistics.
absl::StatusOr<Corpus> OpenText(const TextSettings& settings, const training::Run& run);

// Options of the model: of the checkpoint to resume from, else of `files`, else of a new model with the vocabulary size
// --vocab-size, or the text's if that is 0. Logs which. INVALID_ARGUMENT if the sizes of the vocabularies of text and
// `files` differ, or if the text's is larger than --vocab-size.
absl::StatusOr<ModelOptions> OptionsOf(const TextSettings& settings, const training::Run& run,
                                       const Corpus& corpus, const std::optional<InitialModel>& files);

// FLOP/s of a rank, from --peak-flops: as given, or measured now on all ranks at once; 0 for none.
double PeakFlops(const TextSettings& settings, const training::Run& run);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_BEGIN_H_
