// Trains a GPT on a text, data-parallel and in pipeline stages: tools/gpt_training/README.md.
#include <c10/core/ScalarType.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "models/gpt/safetensors.h"
#include "models/gpt/summary.h"
#include "tools/gpt_training/corpus.h"
#include "tools/gpt_training/flops.h"
#include "tools/gpt_training/gpt_task.h"
#include "tools/gpt_training/model_report.h"
#include "tools/gpt_training/settings.h"
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
          {"block_size", absl::StrCat(s.block_size)},
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

absl::StatusOr<Corpus> OpenText(const GptSettings& settings, const Run& run) {
  PLAIT_ASSIGN_OR_RETURN(
      Corpus corpus, OpenCorpus(settings, run.world, [&](const std::string& line) { run.log.Info(line); }));
  run.log.Info("\n" + CorpusLines(corpus));
  return corpus;
}

// The files of --init-from, whose sizes become the settings'.
absl::StatusOr<std::optional<gpt::HuggingFaceGpt2>> OpenInitialModel(GptSettings& settings, const Run& run) {
  if (settings.initial_model().empty() || run.checkpoint.has_value()) return std::nullopt;
  absl::StatusOr<gpt::HuggingFaceGpt2> files = gpt::HuggingFaceGpt2::Open(settings.initial_model());
  PLAIT_RETURN_IF_ERROR(base::Prefixed(run.world.Agree(files.status()), "--init-from"));
  const gpt::GptOptions& options = files->options();
  if (settings.block_size > options.block_size) {
    return absl::InvalidArgumentError(absl::StrCat("--block-size=", settings.block_size, ": the model in ",
                                                   settings.initial_model(), " has ", options.block_size,
                                                   " positions"));
  }
  settings.n_layer = options.n_layer;
  settings.n_head = options.n_head;
  settings.n_embd = options.n_embd;
  settings.bias = options.bias;
  return std::optional(*std::move(files));
}

double PeakFlops(const GptSettings& settings, const Run& run) {
  double peak = 0;
  if (settings.peak_flops != "measure") {
    return absl::SimpleAtod(settings.peak_flops, &peak) ? peak : 0;
  }
  run.world.Barrier();  // all ranks at once, as in training
  peak = MeasuredPeakFlops(at::TensorOptions(settings.compute_type()).device(run.device));
  run.log.Info(absl::StrFormat("measured peak of rank 0: %.1f GFLOP/s in %s", 1e-9 * peak, settings.dtype));
  return peak;
}

void ReportModel(const GptSettings& settings, const gpt::Gpt& model, const Run& run) {
  for (const std::string& line : ParameterLines(model)) run.log.Info(line);
  run.log.Info(absl::StrCat("model=", model.Description()));
  const std::int64_t sequences = settings.SamplesPerRank(run.data.size());
  run.log.Info("\n" + models::TableText(gpt::LayersOf(model.options(), sequences, settings.block_size),
                                        {.depth = 5,
                                         .input_bytes = 8 * sequences * settings.block_size,
                                         .element_bytes = static_cast<std::int64_t>(
                                             c10::elementSize(settings.compute_type()))}));
}

absl::Status Train(GptSettings& settings, Run& run) {
  const Clock::time_point start = Clock::now();
  PLAIT_ASSIGN_OR_RETURN(const std::optional<gpt::HuggingFaceGpt2> files, OpenInitialModel(settings, run));
  PLAIT_ASSIGN_OR_RETURN(const Corpus corpus, OpenText(settings, run));
  if (settings.prepare_only) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<GptTask> task, GptTask::Make(settings, run, corpus, files));
  run.log.Info(
      absl::StrCat("Tokens per iteration: ", base::FormatCount(settings.TokensPerStep(run.data.size()))));
  run.log.Info(
      absl::StrCat("Using dtype=", settings.dtype, " on device_type='", run.environment.device.kind, "'"));
  if (files.has_value()) {
    run.log.Info(absl::StrCat("Initializing from the model in ", settings.initial_model()));
  } else if (!run.checkpoint.has_value()) {
    run.log.Info("Initializing a new model from scratch");
  }
  ReportModel(settings, task->gpt(), run);
  training::Trainer trainer(run, *task);
  PLAIT_RETURN_IF_ERROR(trainer.Prepare());
  run.log.Info("using fused AdamW: True");
  run.log.Info(absl::StrCat("optimizer=", OptimizerText(trainer.model().optimizer().options())));
  const double peak_flops = PeakFlops(settings, run);
  task->set_peak_flops(peak_flops);
  run.log.Info(
      absl::StrFormat("Startup time: %.4f", std::chrono::duration<double>(Clock::now() - start).count()));
  run.log.Info("\n" + TrainingLegend(run.environment.utf8, peak_flops > 0));
  PLAIT_RETURN_IF_ERROR(trainer.Train());
  return trainer.Conclude();
}

}  // namespace
}  // namespace plait::gpt_training

int main(int argc, char** argv) {
  using namespace plait;
  gpt_training::GptSettings settings;
  return training::RunProgram(
      argc, argv,
      {.name = "train_gpt",
       .summary =
           "Trains a GPT on a text, data-parallel in any way: DDP, ZeRO-1, ZeRO-2, FSDP, with or without "
           "replicas and pipeline stages.",
       .examples = {"train_gpt --nproc=2 --preset=shakespeare-cpu --strategy=fsdp",
                    "train_gpt --nproc=4 --strategy=fsdp --mesh=dp_replicate=2,dp_shard=2 --data=input.txt",
                    "train_gpt --mesh=pp=4 --gradient-accumulation-steps=8 --pipeline-schedule=zb-h1",
                    "mpirun -n 2 train_gpt --preset=gpt2 --batch-size=1 --checkpoint-dir=run --keep-last=3"},
       .settings = settings,
       .run = [&](training::Run& run) { return gpt_training::Train(settings, run); },
       .config_block = [&](const training::Run& run) { return gpt_training::ConfigBlock(settings, run); }});
}
