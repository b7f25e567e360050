// Trains a Llama on random tokens or on a text, sharded: tools/llama_training/README.md.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "models/llama/summary.h"
#include "tools/llama_training/settings.h"
#include "tools/llama_training/step_output.h"
#include "tools/text_training/begin.h"
#include "tools/text_training/save_model.h"
#include "tools/text_training/text_task.h"
#include "tools/training/model_file.h"
#include "tools/training/program.h"
#include "tools/training/trainer.h"

namespace plait::llama_training {
namespace {

using training::Run;

std::vector<std::pair<std::string, std::string>> ConfigBlock(const LlamaSettings& s, const Run& run) {
  const int ranks = run.data.size();
  return {{"n_layers", absl::StrCat(s.n_layers)},
          {"dim", absl::StrCat(s.dim)},
          {"n_heads", absl::StrCat(s.n_heads)},
          {"n_kv_heads", absl::StrCat(s.n_kv_heads)},
          {"hidden", absl::StrCat(s.hidden)},
          {"vocab_size", absl::StrCat(s.vocab_size)},
          {"seq_length", absl::StrCat(s.sequence)},
          {"batch_size", absl::StrCat(s.GlobalBatch(ranks), " on ", ranks, ranks == 1 ? " rank" : " ranks")},
          {"data", s.draws_random_tokens() ? "random tokens (synthetic)" : "text"},
          {"strategy", s.strategy},
          {"dtype", s.dtype},
          {"device", run.environment.device.kind},
          {"world_size", absl::StrCat(run.world.size())},
          {"max_iters", absl::StrCat(s.max_iters)},
          {"lr", absl::StrCat(s.optimizer.learning_rate)},
          {"seed", absl::StrCat(s.seed)}};
}

// "2D": axes of more than one rank.
std::string Dimensions(const comm::DeviceMesh& mesh) {
  const auto parallel = [](const comm::MeshAxis& axis) { return axis.size > 1; };
  const auto count = std::count_if(mesh.axes().begin(), mesh.axes().end(), parallel);
  return absl::StrCat(std::max<std::ptrdiff_t>(count, 1), "D");
}

void ReportLayers(const LlamaSettings& settings, const llama::LlamaOptions& options, const Run& run) {
  const std::int64_t sequences = settings.SamplesPerRank(run.data.size());
  run.log.Info("\n" + models::TableText(llama::LayersOf(options, sequences, settings.sequence),
                                        {.depth = 2,
                                         .input_bytes = 8 * sequences * settings.sequence,
                                         .element_bytes = static_cast<std::int64_t>(
                                             c10::elementSize(settings.compute_type()))}));
}

void ReportModel(const LlamaSettings& settings, const models::ModuleModel& model, const Run& run) {
  const std::string inside = absl::StrReplaceAll(model.Description(), {{"\n", "\n  "}});
  run.log.Info(absl::StrCat("Model after parallelization:\nsharded_model=",
                            absl::AsciiStrToUpper(settings.strategy), "(\n  ", inside, "\n)"));
}

absl::Status Train(LlamaSettings& settings, const std::optional<text_training::InitialModel>& files,
                   Run& run) {
  run.log.Info("Device mesh created:\ndevice_mesh=" + training::DeviceMeshText(run.mesh));
  PLAIT_RETURN_IF_ERROR(training::ProbeModelFolder(settings.save_model, run));
  PLAIT_ASSIGN_OR_RETURN(const text_training::Corpus corpus, text_training::OpenText(settings, run));
  if (settings.prepare_only) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const text_training::ModelOptions options,
                         text_training::OptionsOf(settings, run, corpus, files));
  PLAIT_ASSIGN_OR_RETURN(const auto task,
                         text_training::TextTask::Make(settings, run, corpus, options, files,
                                                       LlamaOutput(!settings.draws_random_tokens())));
  ReportLayers(settings, std::get<llama::LlamaOptions>(options), run);
  training::Trainer trainer(run, *task);
  PLAIT_RETURN_IF_ERROR(trainer.Prepare());
  if (settings.dry_run) return absl::OkStatus();
  ReportModel(settings, task->language_model(), run);
  run.log.Info(absl::StrCat("Creating ", settings.optimizer.is_muon() ? "Muon" : "AdamW",
                            " optimizer with lr=", settings.optimizer.learning_rate));
  task->set_peak_flops(text_training::PeakFlops(settings, run));
  run.log.Info(absl::StrCat("\nStarting ", Dimensions(run.mesh), " training..."));
  run.log.Info(
      absl::StrCat("inp.shape=[", settings.SamplesPerRank(run.data.size()), ", ", settings.sequence, "]"));
  PLAIT_RETURN_IF_ERROR(trainer.Train());
  if (!run.stopped) {
    run.log.Info(absl::StrCat("Finished ", Dimensions(run.mesh), " training"));
    PLAIT_RETURN_IF_ERROR(text_training::SaveModel(settings, run, task->saved_model(), trainer.model()));
  }
  return trainer.Conclude();
}

}  // namespace
}  // namespace plait::llama_training

int main(int argc, char** argv) {
  using namespace plait;
  llama_training::LlamaSettings settings;
  std::optional<text_training::InitialModel> files;
  return training::RunProgram(
      argc, argv,
      {.name = "train_llama",
       .summary =
           "Trains a Llama on random tokens or on a text, its parameters, gradients and optimizer state "
           "sharded over ranks.",
       .examples = {"train_llama --nproc=2 --n-layers=24 --max-iters=8",
                    "train_llama --nproc=4 --mesh=dp_replicate=2,dp_shard=2 --data=input.txt --vocab-size=0",
                    "mpirun -n 2 train_llama --init-from=llama --tokenizer=sentencepiece --save-model=tuned "
                    "--data=input.txt"},
       .settings = settings,
       .run = [&](training::Run& run) { return llama_training::Train(settings, files, run); },
       .take_sizes = [&](training::Run& run) -> absl::Status {
         PLAIT_ASSIGN_OR_RETURN(files, text_training::OpenInitialModel(settings, run, "llama"));
         if (files.has_value()) settings.TakeSizes(std::get<llama::LlamaOptions>(files->options));
         return absl::OkStatus();
       },
       .config_block = [&](const training::Run& run) { return llama_training::ConfigBlock(settings, run); }});
}
