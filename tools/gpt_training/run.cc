#include "tools/gpt_training/run.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "comm/device_mesh.h"
#include "models/gpt/safetensors.h"
#include "models/gpt/summary.h"
#include "parallel/plan/available_memory.h"
#include "tools/gpt_training/corpus.h"
#include "tools/gpt_training/evaluation.h"
#include "tools/gpt_training/flops.h"
#include "tools/gpt_training/introduction.h"
#include "tools/gpt_training/memory.h"
#include "tools/gpt_training/model_report.h"
#include "tools/gpt_training/outputs.h"
#include "tools/gpt_training/resumption.h"
#include "tools/gpt_training/sharded_gpt.h"
#include "tools/gpt_training/step_line.h"
#include "tools/gpt_training/training.h"
#include "tools/gru_training/console.h"

namespace plait::gpt_training {
namespace {

using Clock = std::chrono::steady_clock;

class Program {
 public:
  Program(const Config& config, const std::string& settings, comm::Session& session, comm::DeviceMesh mesh,
          base::Log log, gru_training::Console& console, std::optional<gpt::HuggingFaceGpt2> files)
      : config_(config),
        files_(std::move(files)),
        settings_(settings),
        session_(session),
        world_(session.world()),
        mesh_(std::move(mesh)),
        log_(std::move(log)),
        console_(console) {}

  absl::Status Run(bool* stopped);

 private:
  absl::StatusOr<Corpus> OpenText();
  absl::Status SayModel(const gpt::Gpt& model);
  absl::StatusOr<gpt::GptOptions> Options(const Corpus& corpus) const;
  absl::Status SayBeginning(const Corpus& corpus);
  absl::StatusOr<std::unique_ptr<ShardedGpt>> MakeModel(const Corpus& corpus);
  double PeakFlops();
  absl::Status Train(const Corpus& corpus, ShardedGpt& sharded, bool* stopped);
  absl::Status Conclude(Outputs& outputs);

  const Config& config_;
  std::optional<gpt::HuggingFaceGpt2> files_;  // of --init-from
  const std::string& settings_;
  comm::Session& session_;
  const comm::Communicator& world_;
  comm::DeviceMesh mesh_;
  base::Log log_;
  gru_training::Console& console_;
  Place place_;
  std::optional<Resumption> resumption_;
  Clock::time_point start_ = Clock::now();
};

absl::StatusOr<Corpus> Program::OpenText() {
  PLAIT_ASSIGN_OR_RETURN(Corpus corpus,
                         OpenCorpus(config_, world_, [&](const std::string& line) { log_.Info(line); }));
  log_.Info("\n" + CorpusLines(corpus));
  return corpus;
}

absl::Status Program::SayModel(const gpt::Gpt& model) {
  for (const std::string& line : ParameterLines(model)) log_.Info(line);
  log_.Info(absl::StrCat("model=", model.Description()));
  const std::int64_t blocks = MicroBatchOfRank(config_, world_.size());
  log_.Info("\n" + models::TableText(
                       gpt::LayersOf(model.options(), blocks, config_.block_size),
                       {.depth = 5,
                        .input_bytes = 8 * blocks * config_.block_size,
                        .element_bytes = static_cast<std::int64_t>(c10::elementSize(ComputeType(config_)))}));
  const parallel::MemoryPlan plan = PlanOf(config_, model, mesh_);
  log_.Info("\n" + parallel::MemoryPlanText(plan));
  const int ranks_on_host = place_.job.local_size;
  return world_.Agree(parallel::CheckFits(plan, MemoryOfHost(config_, ranks_on_host), ranks_on_host));
}

absl::StatusOr<gpt::GptOptions> Program::Options(const Corpus& corpus) const {
  const std::int64_t vocabulary = corpus.text.vocabulary_size;
  if (!files_.has_value()) return OptionsOf(config_, vocabulary);
  gpt::GptOptions options = files_->options();
  options.dropout = config_.dropout;
  if (options.vocab_size == vocabulary) return options;
  return absl::InvalidArgumentError(absl::StrCat("--init-from=", config_.init_from, ": the model has ",
                                                 options.vocab_size, " tokens, the text's tokenizer ",
                                                 vocabulary, "; give --tokenizer=gpt2"));
}

absl::Status Program::SayBeginning(const Corpus& corpus) {
  if (!config_.resume.empty()) {
    PLAIT_ASSIGN_OR_RETURN(Resumption resumption, OpenResumption(config_, corpus, world_));
    resumption_.emplace(std::move(resumption));
    log_.Info(absl::StrCat("Resuming after step ", resumption_->state.step, ": ",
                           resumption_->checkpoint.folder()));
  } else if (files_.has_value()) {
    log_.Info(absl::StrCat("Initializing from the model in ", config_.init_from));
  } else {
    log_.Info("Initializing a new model from scratch");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardedGpt>> Program::MakeModel(const Corpus& corpus) {
  PLAIT_RETURN_IF_ERROR(SayBeginning(corpus));
  PLAIT_ASSIGN_OR_RETURN(const gpt::GptOptions options, Options(corpus));
  gpt::Gpt model = MetaModel(config_, options);
  PLAIT_RETURN_IF_ERROR(SayModel(model));
  absl::Status read;
  InitializeFrom from;
  if (files_.has_value()) {
    from = [&](const gpt::Gpt& whole, std::size_t unit) {
      if (read.ok()) read = files_->ReadUnit(whole, unit);
    };
  }
  PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<ShardedGpt> sharded,
                         ShardedGpt::Create(config_, std::move(model), mesh_, from));
  sharded->engine().WaitForParameters();
  PLAIT_RETURN_IF_ERROR(base::Prefixed(world_.Agree(read), "--init-from"));
  if (resumption_.has_value()) PLAIT_RETURN_IF_ERROR(TakeState(*resumption_, *sharded));
  log_.Info("using fused AdamW: True");
  log_.Info(absl::StrCat("optimizer=", OptimizerText(sharded->optimizer().options())));
  return sharded;
}

double Program::PeakFlops() {
  if (config_.peak_flops >= 0) return config_.peak_flops;
  world_.Barrier();  // all ranks at once, as in training
  const double peak = MeasuredPeakFlops(ComputeType(config_));
  log_.Info(absl::StrFormat("measured peak of rank 0: %.1f GFLOP/s in %s", 1e-9 * peak, config_.dtype));
  return peak;
}

absl::Status Program::Conclude(Outputs& outputs) {
  PLAIT_RETURN_IF_ERROR(outputs.Close());
  if (world_.rank() == 0 && config_.plots) outputs.Draw(log_);
  log_.Info(absl::StrCat("history saved in ", outputs.history_path()));
  if (!outputs.trace_path().empty()) {
    log_.Info(absl::StrCat("trace saved in ", outputs.trace_path(), ": open it in ui.perfetto.dev"));
  }
  return absl::OkStatus();
}

absl::Status Program::Train(const Corpus& corpus, ShardedGpt& sharded, bool* stopped) {
  const double peak_flops = PeakFlops();
  std::optional<RunState> resumed;
  if (resumption_.has_value()) resumed = resumption_->state;
  PLAIT_ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(config_, FactsOf(config_, place_, settings_), world_,
                                                        resumed.has_value() ? resumed->history_draws : -1));
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<Training> training,
                         Training::Begin({config_, settings_, session_, mesh_, corpus, log_, console_,
                                          sharded, outputs, resumed, peak_flops}));
  resumption_.reset();
  log_.Info(
      absl::StrFormat("Startup time: %.4f", std::chrono::duration<double>(Clock::now() - start_).count()));
  log_.Info("\n" + TrainingLegend(place_.utf8, peak_flops > 0));
  session_.EnterSteps();
  PLAIT_RETURN_IF_ERROR(training->Run());
  *stopped = training->stopped();
  return Conclude(outputs);
}

absl::Status Program::Run(bool* stopped) {
  if (config_.prepare_only) return OpenText().status();
  place_ = Introduce(config_, mesh_, log_);
  PLAIT_ASSIGN_OR_RETURN(const Corpus corpus, OpenText());
  // Before any file is made.
  PLAIT_RETURN_IF_ERROR(Evaluation::Make(config_, corpus, world_).status());
  log_.Info(absl::StrCat("Tokens per iteration: ", WithCommas(TokensPerStep(config_, world_.size()))));
  log_.Info(absl::StrCat("Using dtype=", config_.dtype, " on device_type='", place_.device.kind, "'"));
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<ShardedGpt> sharded, MakeModel(corpus));
  const absl::Status status = Train(corpus, *sharded, stopped);
  sharded->engine().WaitForParameters();
  return status;
}

absl::StatusOr<std::optional<gpt::HuggingFaceGpt2>> OpenInitialModel(const Config& config,
                                                                     const comm::Communicator& world) {
  if (config.init_from == "scratch" || config.init_from == "resume") return std::nullopt;
  absl::StatusOr<gpt::HuggingFaceGpt2> files = gpt::HuggingFaceGpt2::Open(config.init_from);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(world.Agree(files.status()), "--init-from"));
  return std::optional(*std::move(files));
}

// Settings with the sizes of the model that a run begins from.
absl::StatusOr<Config> WithSizes(Config config, const gpt::GptOptions& options) {
  if (config.block_size > options.block_size) {
    return absl::InvalidArgumentError(absl::StrCat("--block-size=", config.block_size, ": the model in ",
                                                   config.init_from, " has ", options.block_size,
                                                   " positions"));
  }
  config.n_layer = options.n_layer;
  config.n_head = options.n_head;
  config.n_embd = options.n_embd;
  config.bias = options.bias;
  if (config.bpe_folder.empty()) config.bpe_folder = config.init_from;
  return config;
}

// Lines of rank 0 go above the progress bar.
absl::StatusOr<base::Log> MakeLog(int rank, gru_training::Console& console) {
  base::LogOptions options = {.rank = rank, .stream = base::LogStream::kStandardOutput};
  if (rank != 0) return base::MakeLog(options);
  const bool colour = base::DetectTerminal(1).colour;
  options.colour = colour ? base::LogColour::kAlways : base::LogColour::kNever;
  return base::MakeLog(options, [&console](absl::string_view line) {
    console.Print(std::string(absl::StripSuffix(line, "\n")));
  });
}

}  // namespace

absl::Status Run(const Config& given, const std::string& settings, comm::Session& session, bool* stopped) {
  at::set_num_threads(1);
  const comm::Communicator& world = session.world();
  gru_training::Console console(world.rank() == 0);
  PLAIT_ASSIGN_OR_RETURN(base::Log log, MakeLog(world.rank(), console));
  PLAIT_ASSIGN_OR_RETURN(std::optional<gpt::HuggingFaceGpt2> files, OpenInitialModel(given, world));
  Config config = given;
  if (files.has_value()) {
    PLAIT_ASSIGN_OR_RETURN(config, WithSizes(given, files->options()));
  }
  PLAIT_ASSIGN_OR_RETURN(const MeshShape shape, MeshOf(config, world.size()));
  PLAIT_ASSIGN_OR_RETURN(
      comm::DeviceMesh mesh,
      comm::DeviceMesh::Create(world, {{"dp_replicate", shape.dp_replicate}, {"dp_shard", shape.dp_shard}}));
  return Program(config, settings, session, std::move(mesh), std::move(log), console, std::move(files))
      .Run(stopped);
}

}  // namespace plait::gpt_training
