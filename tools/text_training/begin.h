// How a run begins: model, text and peak. Collective; errors are the same on all ranks.
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

// The files of --init-from, where the run does not resume. InvalidArgument for another kind of model, or one
// that sees fewer tokens than a sequence has.
absl::StatusOr<std::optional<InitialModel>> OpenInitialModel(const TextSettings& settings,
                                                             const training::Run& run,
                                                             const std::string& kind);

// The text of --data, or random tokens of settings.vocab_size; reports what it has.
absl::StatusOr<Corpus> OpenText(const TextSettings& settings, const training::Run& run);

// The model of the checkpoint to resume from, of `files`, or from scratch, with a vocabulary of --vocab-size or
// of the text; says which. InvalidArgument where the text has another vocabulary than the files, or more
// tokens than --vocab-size.
absl::StatusOr<ModelOptions> OptionsOf(const TextSettings& settings, const training::Run& run,
                                       const Corpus& corpus, const std::optional<InitialModel>& files);

// --peak-flops of a rank: as given, measured now on all ranks at once, or 0.
double PeakFlops(const TextSettings& settings, const training::Run& run);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_BEGIN_H_
