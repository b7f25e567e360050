#include "tools/plan_parts/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/vit/vit.h"
#include "tools/gpt_training/settings.h"
#include "tools/llama_training/settings.h"
#include "tools/plan_parts/planned_models.h"
#include "tools/text_training/text_task.h"
#include "tools/training/mesh.h"
#include "tools/vit_training/settings.h"
#include "tools/vit_training/vit_task.h"

namespace plait::planning {
namespace {

constexpr int kUsageError = 2;
constexpr std::int64_t kVocabularyOfGpt2 = 50257;
constexpr char kSummary[] =
    "Predicts memory per rank, traffic and step time of every mesh for a model, a cluster and a batch, "
    "without running anything: which meshes are best, and which strategy to choose, with the reasons. "
    "Models are gpt, llama and vit, each with all flags of its trainer.";

std::shared_ptr<training::Settings> TrainerOf(const std::string& model) {
  if (model == "gpt") return std::make_shared<gpt_training::GptSettings>();
  if (model == "llama") return std::make_shared<llama_training::LlamaSettings>();
  if (model == "vit") return std::make_shared<vit_training::VitSettings>();
  return nullptr;
}

void Bind(PlanSettings& settings, training::SettingsTable& table) {
  table.Group("Plan");
  table.Add(
      "cluster", &settings.cluster,
      "text file that describes the cluster (parallel/plan/cluster.h); if --nproc exceeds the ranks of its "
      "only node, they share its processors and memory");
  table.Add(
      "samples_per_step", &settings.samples_per_step,
      "sequences or images of a step, over all ranks and micro-batches; 0: --gradient-accumulation-steps "
      "times --global-batch-size, or times --batch-size for each rank");
  table.Add("top", &settings.top, "meshes to print");
  table.Add("explain", &settings.explain, "prints each term of the time, the memory and the traffic");
  table.Add("advise", &settings.advise, "prints which strategy to choose, with the reasons");
  table.Add("calibrate", &settings.calibrate,
            "measures this machine with the model's products and messages, and writes this cluster file; run "
            "it under "
            "mpirun to measure several nodes");
}

std::vector<std::string> Examples() {
  return {
      "plan llama --cluster=cluster.txt --samples-per-step=256    # the best meshes of all ranks",
      "plan llama --cluster=cluster.txt --mesh=dp_shard=4,tp=2 --strategy=fsdp --explain",
      "plan llama --cluster=cluster.txt --mesh=pp=8,dp_shard=64,tp=8 --dry-run    # counts a step's tensors",
      "plan gpt --preset=gpt2-xl --cluster=cluster.txt --samples-per-step=512",
      "mpirun -n 2 plan llama --calibrate=machine.txt"};
}

int FailUsage(int rank, const std::string& line) {
  if (rank == 0) std::fprintf(stderr, "plan: %s\n", line.c_str());
  return kUsageError;
}

std::int64_t SamplesOf(const PlanSettings& settings, int ranks) {
  return settings.samples_per_step > 0 ? settings.samples_per_step : settings.trainer->StepSamples(ranks);
}

// Null: a model of text.
const vit_training::VitSettings* Images(const PlanSettings& settings) {
  return dynamic_cast<const vit_training::VitSettings*>(settings.trainer.get());
}
const text_training::TextSettings& Text(const PlanSettings& settings) {
  return dynamic_cast<const text_training::TextSettings&>(*settings.trainer);
}
text_training::ModelOptions TextOptions(const PlanSettings& settings) {
  const text_training::TextSettings& text = Text(settings);
  return text.Options(text.vocab_size > 0 ? text.vocab_size : kVocabularyOfGpt2);
}

const training::OptimizerSettings& Optimizer(const PlanSettings& settings) {
  const vit_training::VitSettings* const vit = Images(settings);
  return vit != nullptr ? vit->optimizer : Text(settings).optimizer;
}

// Flags that only a dry run takes into account.
absl::Status CheckEstimated(const PlanSettings& s) {
  const training::Settings& trainer = *s.trainer;
  const std::string& optimizer = Optimizer(s).optimizer;
  const auto* const gpt = dynamic_cast<const gpt_training::GptSettings*>(&trainer);
  bool has_lp = false;
  for (const absl::string_view axis : absl::StrSplit(trainer.mesh, ',')) {
    has_lp = has_lp || (absl::StartsWith(axis, "lp=") && axis != "lp=1");
  }
  const struct {
    bool given;
    std::string flag, expected;
  } flags[] = {{trainer.activation_checkpointing != "none",
                "activation-checkpointing=" + trainer.activation_checkpointing, "none"},
               {trainer.offload != "none", "offload=" + trainer.offload, "none"},
               {optimizer != "adamw", "optimizer=" + optimizer, "adamw"},
               {gpt != nullptr && gpt->moe.used, "moe", "a model without experts"},
               {trainer.reproducible, "reproducible", "ordinary sums"},
               {trainer.lp.force, "force-lp", "one rank without a solver"},
               {has_lp, "mesh=" + trainer.mesh, "a mesh without lp"},
               {gpt != nullptr && trainer.expert_ranks() > 1, "mesh=" + trainer.mesh, "a mesh without ep"}};
  for (const auto& [given, flag, expected] : flags) {
    if (!given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": not supported by estimates; expected --dry-run, or ", expected));
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const PlanSettings& s) {
  using training::AtLeast;
  const training::Settings& trainer = *s.trainer;
  PLAIT_RETURN_IF_ERROR(AtLeast("samples-per-step", static_cast<double>(s.samples_per_step), 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("batch-size", static_cast<double>(trainer.batch_size), 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("global-batch-size", static_cast<double>(trainer.global_batch_size), 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("gradient-accumulation-steps", trainer.gradient_accumulation_steps, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("threads", trainer.threads, 1));
  PLAIT_RETURN_IF_ERROR(trainer.CheckMemoryLimit());
  PLAIT_RETURN_IF_ERROR(AtLeast("top", s.top, 1));
  if (trainer.has_initial_model() || !trainer.resume.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(trainer.resume.empty() ? "--init-from" : "--resume",
                     ": not supported; expected the model's sizes as flags, or --preset"));
  }
  if (s.cluster.empty() == s.calibrate.empty()) {
    return absl::InvalidArgumentError("expected --cluster=FILE, or --calibrate=FILE to write one");
  }
  if (!s.calibrate.empty() && trainer.device == "cuda") {
    return absl::InvalidArgumentError(
        "--device=cuda: --calibrate measures the host's processors only; expected cpu");
  }
  if (!s.calibrate.empty() && trainer.dry_run) {
    return absl::InvalidArgumentError("--dry-run: expected --cluster=FILE, not --calibrate");
  }
  return trainer.dry_run ? absl::OkStatus() : CheckEstimated(s);
}

absl::Status CheckGiven(const PlanSettings& s, const training::SettingsTable& table) {
  const bool estimates = s.calibrate.empty() && !s.trainer->dry_run;
  if (!estimates) {
    PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("explain", "an estimate, without --calibrate and --dry-run"));
  }
  if (!s.calibrate.empty()) PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("samples_per_step", "--cluster=FILE"));
  if (estimates && s.trainer->mesh.empty()) return absl::OkStatus();
  for (const char* of_search : {"top", "advise"}) {
    PLAIT_RETURN_IF_ERROR(
        table.CheckNoneGiven(of_search, "a search, without --mesh, --calibrate and --dry-run"));
  }
  return absl::OkStatus();
}

// A search has its own rule for sequence parallelism (SearchOptions).
absl::Status CheckSearched(const PlanSettings& settings, const training::SettingsTable& table) {
  const training::Settings& trainer = *settings.trainer;
  const bool searches = settings.calibrate.empty() && trainer.mesh.empty() && !trainer.dry_run;
  if (!searches || !table.Given("sequence_parallel")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", trainer.sequence_parallel ? "" : "no",
                   "sequence-parallel: without --mesh, every mesh of tp whose sequences divide uses it; "
                   "expected --mesh=..., or leave it out"));
}

// What a trainer would refuse on any mesh.
absl::Status CheckChoices(const training::Settings& trainer) {
  using training::OneOf;
  std::vector<std::string> types = {"float32", "float64"};
  for (const std::string& type : trainer.narrow_types()) types.push_back(type);
  PLAIT_RETURN_IF_ERROR(OneOf("dtype", trainer.dtype, types));
  return OneOf("context-attention", trainer.context_attention, {"ring", "ulysses"});
}

}  // namespace

PlanSettings ParseOrExit(int argc, char** argv, int rank) {
  PlanSettings settings;
  training::SettingsTable table;
  Bind(settings, table);
  if (argc > 1) settings.trainer = TrainerOf(argv[1]);
  if (settings.trainer != nullptr) {
    settings.model = argv[1];
    settings.trainer->Bind(table);
  }
  base::ToolUsage usage = table.Usage("plan", kSummary, Examples());
  usage.positional = "gpt|llama|vit";
  const std::vector<std::string> models = base::ParseFlagsOrExit(argc, argv, usage, rank);
  if (settings.trainer == nullptr || models.size() != 1) {
    std::exit(FailUsage(rank, models.size() > 1
                                  ? absl::StrCat("unexpected argument ", models[1])
                                  : "expected gpt, llama or vit first (--help; plan llama --help)"));
  }
  absl::Status status = CheckPlan(settings);
  if (status.ok()) status = settings.trainer->ChooseDefaults(table);
  if (status.ok()) status = settings.trainer->CheckGiven(table);
  if (status.ok()) status = CheckGiven(settings, table);
  if (status.ok()) status = CheckChoices(*settings.trainer);
  if (status.ok()) status = CheckSearched(settings, table);
  settings.strategy_given = table.Given("strategy");
  if (!status.ok()) std::exit(FailUsage(rank, std::string(status.message())));
  return settings;
}

absl::StatusOr<parallel::PlannedModel> ModelOf(const PlanSettings& settings) {
  const training::Settings& trainer = *settings.trainer;
  if (const vit_training::VitSettings* vit = Images(settings)) {
    const vit::VitOptions options = vit->Options(vit->classes);
    PLAIT_RETURN_IF_ERROR(vit::Validate(options));
    return Planned(options, trainer.master_type());
  }
  const text_training::ModelOptions options = TextOptions(settings);
  PLAIT_RETURN_IF_ERROR(std::visit([](const auto& o) { return Validate(o); }, options));
  return Planned(options, Text(settings).sequence, trainer.master_type());
}

std::int64_t ParametersOf(const PlanSettings& settings) {
  if (const vit_training::VitSettings* vit = Images(settings)) {
    return vit::ParameterCount(vit->Options(vit->classes));
  }
  const text_training::ModelOptions options = TextOptions(settings);
  if (const auto* gpt = std::get_if<gpt::GptOptions>(&options)) {
    return gpt::ParameterCount(*gpt, /*with_positions=*/true);
  }
  return llama::ParameterCount(std::get<llama::LlamaOptions>(options));
}

absl::StatusOr<CalibrationModel> CalibrationModelOf(const PlanSettings& settings) {
  CalibrationModel model = {.planned = {}, .make = {}, .batch = {}, .samples = settings.trainer->batch_size};
  PLAIT_ASSIGN_OR_RETURN(model.planned, ModelOf(settings));
  if (const vit_training::VitSettings* vit = Images(settings)) {
    const vit::VitOptions options = vit->Options(vit->classes);
    model.make = [options](std::int64_t blocks, at::ScalarType type) { return Made(options, blocks, type); };
    model.batch = [options](std::int64_t samples, at::ScalarType type) {
      return Batch(options, samples, type);
    };
    return model;
  }
  const text_training::ModelOptions options = TextOptions(settings);
  model.make = [options](std::int64_t blocks, at::ScalarType type) { return Made(options, blocks, type); };
  model.batch = [sequence = Text(settings).sequence](std::int64_t samples, at::ScalarType) {
    return Batch(samples, sequence);
  };
  return model;
}

namespace {

// Of a rank.
void LimitMemory(const training::Settings& trainer, parallel::Cluster& cluster) {
  if (!trainer.has_memory_limit()) return;
  const auto limit = static_cast<double>(trainer.memory(/*ranks_on_host=*/1, at::kCPU).bytes);
  cluster.memory_bytes = std::min(cluster.memory_bytes, limit);
}

// With the ranks of --nproc, which may be more than the file has.
absl::StatusOr<parallel::Cluster> WithRanks(const PlanSettings& settings, parallel::Cluster cluster) {
  const int ranks = settings.trainer->nproc;
  if (ranks <= cluster.ranks()) return cluster;
  if (cluster.nodes > 1) {
    return absl::InvalidArgumentError(absl::StrCat("--nproc=", ranks, ": the cluster has ", cluster.ranks(),
                                                   " ranks; expected at most as many"));
  }
  // A file of one rank may have no link: times would be infinite.
  if (cluster.within_node.bytes_per_second == 0 && !settings.trainer->dry_run) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--nproc=", ranks, ": the cluster's file has no within_node { ... }, a link between them"));
  }
  const double share = static_cast<double>(cluster.ranks_per_node) / ranks;
  cluster.memory_bytes *= share;
  cluster.offload_bytes *= share;
  cluster.ranks_per_node = ranks;
  return cluster;
}

}  // namespace

absl::StatusOr<parallel::Cluster> ClusterOf(const PlanSettings& settings) {
  PLAIT_ASSIGN_OR_RETURN(parallel::Cluster cluster, parallel::ReadCluster(base::FromUser(settings.cluster)));
  PLAIT_ASSIGN_OR_RETURN(cluster, WithRanks(settings, cluster));
  LimitMemory(*settings.trainer, cluster);
  return cluster;
}

absl::StatusOr<int> RanksOf(const PlanSettings& settings, const parallel::Cluster& cluster) {
  const training::Settings& trainer = *settings.trainer;
  // A size of -1 fills the cluster; a trainer's would fill what it starts by itself, of at most 8 ranks.
  const bool fills = trainer.mesh.empty() || absl::StrContains(trainer.mesh, "=-1");
  if (fills && trainer.nproc == 0) return cluster.ranks();
  return training::RanksToStart(trainer.nproc, trainer.mesh, cluster.ranks());
}

absl::StatusOr<parallel::PlannedRun> RunOf(const PlanSettings& settings, const parallel::Cluster& cluster) {
  const training::Settings& trainer = *settings.trainer;
  PLAIT_ASSIGN_OR_RETURN(const int ranks, RanksOf(settings, cluster));
  const auto schedule = parallel::ParseScheduleKind(trainer.pipeline_schedule);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(schedule.status(), "--pipeline-schedule"));
  const auto strategy = parallel::ParseStrategy(trainer.strategy);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(strategy.status(), "--strategy"));
  parallel::PlannedRun run = {.strategy = *strategy,
                              .sequence_parallel = trainer.sequence_parallel,
                              .context = trainer.context_kind(),
                              .schedule = *schedule,
                              .chunks = trainer.pipeline_chunks,
                              .micro_batch = SamplesOf(settings, ranks),
                              .master_type = trainer.master_type(),
                              .compute_type = trainer.compute_type(),
                              .reshard_after_forward = trainer.reshard_after_forward,
                              .prefetch = trainer.prefetch,
                              .reduce_each_micro_batch = trainer.reduce_each_micro_batch};
  if (trainer.mesh.empty()) return run;
  PLAIT_ASSIGN_OR_RETURN(const std::vector<comm::MeshAxis> axes, trainer.Axes(ranks));
  for (const comm::MeshAxis& axis : axes) {
    int* const sizes[] = {&run.mesh.pp, &run.mesh.dp_replicate, &run.mesh.dp_shard, &run.mesh.cp,
                          &run.mesh.tp};
    constexpr const char* kNames[] = {"pp", "dp_replicate", "dp_shard", "cp", "tp"};
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      if (axis.name == kNames[i]) *sizes[i] = axis.size;
    }
  }
  if (ranks > cluster.ranks()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--mesh=", trainer.mesh, ": ", ranks, " ranks, but the cluster has ", cluster.ranks(),
                     "; give --nproc=", ranks, " where they share the processors of one node"));
  }
  const int data_ranks = run.mesh.data_ranks();
  run.micro_batches = trainer.gradient_accumulation_steps;
  run.micro_batch = trainer.SamplesPerRank(data_ranks);
  run.step_samples = SamplesOf(settings, data_ranks);
  if (run.step_samples < std::int64_t{run.micro_batches} * data_ranks && settings.samples_per_step == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--global-batch-size=", trainer.global_batch_size, ": ", data_ranks,
                     " data-parallel ranks; expected at least one sample for each"));
  }
  if (settings.samples_per_step > 0) {
    const std::int64_t parts = std::int64_t{run.micro_batches} * data_ranks;
    if (settings.samples_per_step % parts != 0) {
      return absl::InvalidArgumentError(absl::StrCat("--samples-per-step=", settings.samples_per_step,
                                                     ": expected a multiple of ", parts,
                                                     ", micro-batches times data-parallel ranks"));
    }
    run.micro_batch = settings.samples_per_step / parts;
  }
  return run;
}

absl::StatusOr<training::DryRunResult> DryRunOf(const PlanSettings& settings,
                                                const parallel::Cluster& cluster) {
  training::Settings& trainer = *settings.trainer;
  if (trainer.mesh.empty()) return absl::InvalidArgumentError("--dry-run: expected --mesh");
  PLAIT_ASSIGN_OR_RETURN(const parallel::PlannedRun run, RunOf(settings, cluster));
  PLAIT_ASSIGN_OR_RETURN(const int ranks, RanksOf(settings, cluster));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<comm::MeshAxis> axes, trainer.Axes(ranks));
  if (settings.samples_per_step > 0) {
    trainer.batch_size = run.micro_batch;
    trainer.global_batch_size = 0;
  }
  trainer.Complete(axes);
  PLAIT_RETURN_IF_ERROR(trainer.Check(axes));
  const vit_training::VitSettings* const vit = Images(settings);
  return training::DryRun(trainer, axes,
                          vit != nullptr
                              ? vit_training::DryRunModelOf(*vit, vit->Options(vit->classes))
                              : text_training::DryRunModelOf(Text(settings), TextOptions(settings)));
}

}  // namespace plait::planning
