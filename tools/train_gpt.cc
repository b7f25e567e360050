// Trains a GPT on a text, on any mesh: tools/gpt_training/README.md.
#include <c10/core/ScalarType.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "models/gpt/gpt.h"
#include "models/gpt/summary.h"
#include "tools/gpt_training/model_report.h"
#include "tools/gpt_training/settings.h"
#include "tools/gpt_training/step_line.h"
#include "tools/text_training/begin.h"
#include "tools/text_training/save_model.h"
#include "tools/text_training/text_task.h"
#include "tools/training/model_file.h"
#include "tools/training/program.h"
#include "tools/training/trainer.h"

namespace plait::gpt_training {
namespace {

using Clock = std::chrono::steady_clock;
using training::Run;

std::vector<std::pair<std::string, std::string>> ConfigBlock(const GptSettings& s, const Run& run) {
  const int ranks = run.data.size();
  return {{"preset", s.preset},
          {"n_layer", absl::StrCat(s.n_layer)},
          {"n_head", absl::StrCat(s.n_head)},
          {"n_embd", absl::StrCat(s.n_embd)},
          {"block_size", absl::StrCat(s.sequence)},
          {"dropout", absl::StrCat(s.dropout)},
          {"bias", s.bias ? "true" : "false"},
          {"batch_size", absl::StrCat(s.GlobalBatch(ranks), " on ", ranks, ranks == 1 ? " rank" : " ranks")},
          {"gradient_accumulation_steps", absl::StrCat(s.gradient_accumulation_steps)},
          {"strategy", s.strategy},
          {"dtype", s.dtype},
          {"activation_checkpointing", s.activation_checkpointing},
          {"device", run.environment.device.kind},
          {"world_size", absl::StrCat(run.world.size())},
          {"max_iters", absl::StrCat(s.max_iters)},
          {"seed", absl::StrCat(s.seed)}};
}

void ReportModel(const GptSettings& settings, const text_training::TextTask& task, const Run& run) {
  const models::ModuleModel& model = task.language_model();
  const auto& options = std::get<gpt::GptOptions>(task.options());
  for (const std::string& line : ParameterLines(model, gpt::ParameterCount(options, false))) {
    run.log.Info(line);
  }
  run.log.Info(absl::StrCat("model=", model.Description()));
  const std::int64_t sequences = settings.SamplesPerRank(run.data.size());
  run.log.Info("\n" + models::TableText(gpt::LayersOf(options, sequences, settings.sequence),
                                        {.depth = 5,
                                         .input_bytes = 8 * sequences * settings.sequence,
                                         .element_bytes = static_cast<std::int64_t>(
                                             c10::elementSize(settings.compute_type()))}));
}

absl::Status Train(GptSettings& settings, const std::optional<text_training::InitialModel>& files, Run& run) {
  const Clock::time_point start = Clock::now();
  PLAIT_RETURN_IF_ERROR(training::ProbeModelFolder(settings.save_model, run));
  PLAIT_ASSIGN_OR_RETURN(const text_training::Corpus corpus, text_training::OpenText(settings, run));
  if (settings.prepare_only) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(text_training::ModelOptions options,
                         text_training::OptionsOf(settings, run, corpus, files));
  settings.ChooseTraining(std::get<gpt::GptOptions>(options));
  PLAIT_ASSIGN_OR_RETURN(const auto task,
                         text_training::TextTask::Make(settings, run, corpus, options, files, GptOutput()));
  run.log.Info(
      absl::StrCat("Tokens per iteration: ", base::FormatCount(settings.TokensPerStep(run.data.size()))));
  run.log.Info(
      absl::StrCat("Using dtype=", settings.dtype, " on device_type='", run.environment.device.kind, "'"));
  ReportModel(settings, *task, run);
  training::Trainer trainer(run, *task);
  PLAIT_RETURN_IF_ERROR(trainer.Prepare());
  if (settings.dry_run) return absl::OkStatus();
  run.log.Info(settings.optimizer.is_muon() ? "using Muon for matrices of blocks, fused AdamW for the others"
                                            : "using fused AdamW: True");
  run.log.Info(absl::StrCat("optimizer=", OptimizerText(trainer.model().optimizer().options())));
  const double peak_flops = text_training::PeakFlops(settings, run);
  task->set_peak_flops(peak_flops);
  run.log.Info(
      absl::StrFormat("Startup time: %.4f", std::chrono::duration<double>(Clock::now() - start).count()));
  run.log.Info("\n" + TrainingLegend(run.environment.utf8, peak_flops > 0));
  PLAIT_RETURN_IF_ERROR(trainer.Train());
  if (!run.stopped) {
    PLAIT_RETURN_IF_ERROR(text_training::SaveModel(settings, run, task->saved_model(), trainer.model()));
  }
  return trainer.Conclude();
}

}  // namespace
}  // namespace plait::gpt_training

int main(int argc, char** argv) {
  using namespace plait;
  gpt_training::GptSettings settings;
  std::optional<text_training::InitialModel> files;
  return training::RunProgram(
      argc, argv,
      {.name = "train_gpt",
       .summary = "Trains a GPT on a text, on any mesh: DDP, ZeRO-1, ZeRO-2, FSDP, with replicas, tensor, "
                  "context, pipeline and "
                  "layer parallelism; with --moe a mixture of experts.",
       .examples = {"train_gpt --nproc=2 --preset=shakespeare-cpu --strategy=fsdp",
                    "train_gpt --nproc=4 --strategy=fsdp --mesh=dp_replicate=2,dp_shard=2 --data=input.txt",
                    "train_gpt --mesh=pp=4 --gradient-accumulation-steps=8 --pipeline-schedule=zb-h1",
                    "train_gpt --moe --moe-experts=8 --mesh=dp_replicate=2,ep=2",
                    "mpirun -n 2 train_gpt --preset=gpt2 --batch-size=1 --checkpoint-dir=run --keep-last=3"},
       .settings = settings,
       .run = [&](training::Run& run) { return gpt_training::Train(settings, files, run); },
       .take_sizes = [&](training::Run& run) -> absl::Status {
         PLAIT_ASSIGN_OR_RETURN(files, text_training::OpenInitialModel(settings, run, "gpt2"));
         if (files.has_value()) settings.TakeSizes(std::get<gpt::GptOptions>(files->options));
         return absl::OkStatus();
       },
       .config_block = [&](const training::Run& run) { return gpt_training::ConfigBlock(settings, run); }});
}
