#include "tools/training/settings.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/address_space.h"
#include "base/path.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "tools/training/mesh.h"

namespace plait::training {
namespace {

absl::Status Invalid(const std::string& line) { return absl::InvalidArgumentError(line); }

absl::Status OutOfBounds(const char* flag, double value, const std::string& expected) {
  return Invalid(absl::StrCat("--", flag, "=", value, ": ", expected));
}

// "8G", "512M" or bytes.
absl::StatusOr<double> Bytes(const std::string& text) {
  constexpr std::pair<char, double> kUnits[] = {{'K', 1 << 10}, {'M', 1 << 20}, {'G', 1 << 30}};
  absl::string_view number = text;
  double factor = 1, count = 0;
  for (const auto& [unit, size] : kUnits) {
    if (number.empty() || number.back() != unit) continue;
    factor = size;
    number.remove_suffix(1);
    break;
  }
  // As an integer for up to 2^20 ranks on a host.
  if (absl::SimpleAtod(number, &count) && count >= 0 && count * factor < 0x1p43) return count * factor;
  return Invalid(absl::StrCat("--memory-limit=", text, ": expected a size such as 8G"));
}

parallel::NodeMemory HostMemory(int ranks_on_host) {
  const parallel::NodeMemory host = parallel::AvailableMemory();
  const std::optional<std::int64_t> left = base::AddressSpaceLeft();
  if (!left.has_value() || (host.bytes >= 0 && host.bytes / ranks_on_host <= *left)) return host;
  return {.bytes = *left * ranks_on_host, .limited_by = "address space, ulimit -v"};
}

// Numbers of samples and tokens stay below 2^63.
absl::Status CheckStepSamples(const Settings& s, int data_ranks) {
  constexpr double kMost = 1e12;
  const bool of_all = s.global_batch_size > 0;
  const double batch =
      of_all ? static_cast<double>(s.global_batch_size) : static_cast<double>(s.batch_size) * data_ranks;
  const double samples = batch * s.gradient_accumulation_steps;
  if (samples <= kMost) return absl::OkStatus();
  return Invalid(absl::StrCat(
      of_all ? "--global-batch-size=" : "--batch-size=", of_all ? s.global_batch_size : s.batch_size,
      ": a step of ", samples, " samples; expected at most ", kMost));
}

}  // namespace

void Settings::BindBatch(SettingsTable& table, const std::string& samples) {
  table.Add("batch_size", &batch_size, samples + " of a micro-batch on each data-parallel rank");
  table.Add("global_batch_size", &global_batch_size,
            samples +
                " of a micro-batch on all data-parallel ranks together, which may get unequal parts; 0: "
                "--batch-size on each");
  table.Add("gradient_accumulation_steps", &gradient_accumulation_steps, "micro-batches of a step",
            OnResume::kSame);
  table.Add("seed", &seed, "random seed of initial parameters, the order of the data and dropout",
            OnResume::kSame);
}

void Settings::BindParallel(SettingsTable& table) {
  const std::vector<std::string> own_axes = mesh_axes();
  if (std::count(own_axes.begin(), own_axes.end(), "lp") > 0) lp.Bind(table);
  table.Group("Ranks");
  table.Add("nproc", &nproc,
            absl::StrCat("number of ranks to start where no launcher did; 0: those of --mesh, else ",
                         runs_on_one_rank() ? "1" : "one per GPU, or core where there is none, at most 8"));
  table.Add("strategy", &strategy,
            "what is replicated: ddp: everything, zero1: parameters and gradients, zero2: parameters, fsdp: "
            "nothing");
  std::vector<std::string> axes = {"dp_replicate", "dp_shard"};
  axes.insert(axes.end(), own_axes.begin(), own_axes.end());
  table.Add("mesh", &mesh,
            absl::StrCat("ranks along each axis (", absl::StrJoin(axes, ", "), "), for example ",
                         own_axes.empty() ? "" : own_axes[0] + "=2,",
                         "dp_replicate=2; -1: the remaining ranks; dp_shard above 1 needs "
                         "--strategy=zero1, zero2 or fsdp; empty: all ranks on one axis"));
  table.Add("reshard_after_forward", &reshard_after_forward,
            "fsdp: frees a block's parameters after its forward pass and gathers them again for backward");
  table.Add("prefetch", &prefetch, "fsdp: gathers the next block's parameters during a block's computation");
  table.Add("reduce_each_micro_batch", &reduce_each_micro_batch,
            "zero2 and fsdp: reduces gradients after each micro-batch and keeps shards in between");
  if (std::count(axes.begin(), axes.end(), "pp") > 0) {
    table.Add("pipeline_schedule", &pipeline_schedule,
              "order of the micro-batches (--gradient-accumulation-steps) on the stages of pp: 1f1b, gpipe, "
              "interleaved (several stages per rank), zb-h1 or zbv (backward in two parts, less idle time)");
    table.Add("pipeline_chunks", &pipeline_chunks,
              "stages per rank of pp; 0: 2 for interleaved and zbv, else 1");
  }
  if (std::count(axes.begin(), axes.end(), "tp") > 0) {
    table.Add("sequence_parallel", &sequence_parallel,
              "with tp: norms, dropout and residual sums are split by tokens; less activation memory, same "
              "traffic");
  }
  if (std::count(axes.begin(), axes.end(), "cp") > 0) {
    table.Add("context_attention", &context_attention,
              "with cp, attention to the tokens of other ranks: ring (keys and values circulate), or "
              "ulysses (whole sequences of some heads)");
  }
  table.Add("timeout", &timeout, "seconds a rank may wait for another before the job ends and names it");
  table.Group("Arithmetic and memory");
  table.Add("dtype", &dtype,
            absl::StrCat("compute dtype: float32, float64, ", absl::StrJoin(narrow_types(), ", ")),
            OnResume::kSame);
  if (blocks_are_steps()) {
    table.Add(
        "reproducible", &reproducible,
        "bitwise identical losses and parameters for any power of two of ranks along pp, dp_replicate and "
        "dp_shard: sums over a fixed tree, whose leaves are parts of a step's samples",
        OnResume::kSame);
    table.Add("reproducible_leaves", &reproducible_leaves,
              "with --reproducible: number of these parts, each a micro-batch of one rank, instead of "
              "--gradient-accumulation-steps; a power of two, at least the data-parallel ranks",
              OnResume::kSame);
  }
  table.Add("device", &device,
            "auto, cpu or cuda, with one rank per GPU; auto: cuda if every rank has a GPU, else cpu");
  table.Add("threads", &threads, "LibTorch's intra-op threads per rank, at least 1");
  table.Add(
      "activation_checkpointing", &activation_checkpointing,
      "blocks whose activations are recomputed in the backward pass: none, full (all), every-K (blocks 0, K, "
      "2K, ...), or names separated by commas, with wildcards: transformer.h.1*",
      OnResume::kFree, /*old_name=*/"activation_checkpoints");
  table.Add("offload", &offload,
            "where optimizer state and mixed-precision masters are kept: none (memory), or a directory");
  table.Add("offload_params", &offload_params, "with --offload and fsdp: also the parameter shards");
  table.Add("memory_limit", &memory_limit,
            "bytes per rank, such as 8G; a run that needs more does not start. 0: the memory of its GPU, or "
            "the host's, shared by its ranks");
  table.Add("dry_run", &dry_run,
            "runs a step of the mesh in this process, without memory and messages, prints each rank's memory "
            "and traffic, and "
            "exits (of train_gpt, train_llama, train_vit and train_odenet)");
}

void Settings::BindFiles(SettingsTable& table, const std::string& draws) {
  table.Group("Files");
  table.Add("outputs", &outputs,
            "directory for history, plots and trace; empty: outputs/PROGRAM/DATE-TIME (train_gru, "
            "train_video: none, "
            "unless --plots or --trace is given)");
  table.Add("history", &history,
            absl::StrCat("HDF5 file of all ", draws,
                         " (xarray, ncdump and h5py open it); empty: ", history_name, " in --outputs"));
  table.Add("plots", &plots, "plots all metrics, in the terminal and as files");
  table.Add("trace", &trace, "writes a Chrome trace of all ranks (Perfetto opens it)");
  table.Add("checkpoint_dir", &checkpoint_dir,
            "directory for checkpoints: every --checkpoint-interval, and after the step in which SIGTERM, "
            "SIGHUP, SIGUSR1 or ^C comes, or before the job's time is over; then the exit code is 143 (^C: "
            "130; a second ^C ends at once; SIGHUP to the parent of --nproc: 129)");
  table.Add("checkpoint_interval", &checkpoint_interval,
            "save a checkpoint every N steps; 0: after each evaluation", OnResume::kFree,
            /*old_name=*/"checkpoint_every");
  table.Add(
      "grace", &grace,
      "seconds that the ranks of --nproc have to save their state in after a signal, before they are killed");
  table.Add("keep_last", &keep_last, "number of checkpoints to keep; 0: all");
  table.Add(
      "resume", &resume,
      "checkpoint, or directory of checkpoints, to resume from; auto: from --checkpoint-dir if it has a "
      "checkpoint, else from the start");
  table.Add(
      "eval_only", &eval_only,
      "evaluates the model of --resume, prints the same lines as an evaluation during training, and exits");
}

at::ScalarType Settings::master_type() const { return dtype == "float64" ? at::kDouble : at::kFloat; }

at::ScalarType Settings::compute_type() const {
  if (dtype == "bfloat16") return at::kBFloat16;
  return dtype == "float16" ? at::kHalf : master_type();
}

parallel::Strategy Settings::parsed_strategy() const {
  return parallel::ParseStrategy(strategy).value_or(parallel::Strategy::kDdp);
}

absl::StatusOr<std::vector<comm::MeshAxis>> Settings::Axes(int ranks) const {
  if (!parallel::ParseStrategy(strategy).ok()) {
    return OneOf("strategy", strategy, parallel::StrategyNames());
  }
  return MeshOf(mesh, {.strategy = parsed_strategy(), .axes = mesh_axes(), .default_axis = default_axis()},
                ranks);
}

int Settings::expert_ranks() const { return ExpertRanks(mesh); }

context_parallel::ContextKind Settings::context_kind() const {
  using context_parallel::ContextKind;
  return context_attention == "ulysses" ? ContextKind::kUlysses : ContextKind::kRing;
}

parallel::StateStoreOptions Settings::state_offload() const {
  if (offload == "none") return {};
  return {.target = parallel::OffloadTarget::kFile, .folder = base::FromUser(offload)};
}

device::DeviceRequest Settings::device_request() const {
  return {.kind = device::ParseDeviceKind(device).value_or(device::DeviceKind::kAuto), .threads = threads};
}

bool Settings::has_memory_limit() const {
  return memory(/*ranks_on_host=*/1, at::kCPU).limited_by == "--memory-limit";
}

parallel::NodeMemory Settings::memory(int ranks_on_host, at::Device on) const {
  const double limit = Bytes(memory_limit).value_or(0);
  if (limit > 0) {
    return {.bytes = static_cast<std::int64_t>(limit * ranks_on_host), .limited_by = "--memory-limit"};
  }
  if (on.is_cpu()) return HostMemory(ranks_on_host);
  const std::size_t free = c10::getDeviceAllocator(on.type())->getMemoryInfo(on.index()).first;
  return {.bytes = static_cast<std::int64_t>(free) * ranks_on_host, .limited_by = "free memory of the GPUs"};
}

int Settings::DefaultRanks() const {
  if (runs_on_one_rank()) return 1;
  // Threads that CUDA starts inherit the mask: signals must not end the process there, but reach who handles them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const int gpus = device == "cpu" ? 0 : device::DetectRankFacts({}).gpus;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return gpus > 0 ? gpus : base::UsableProcessors();
}

std::int64_t Settings::GlobalBatch(int data_ranks) const {
  return global_batch_size > 0 ? global_batch_size : batch_size * data_ranks;
}

std::int64_t Settings::StepSamples(int data_ranks) const {
  return GlobalBatch(data_ranks) * gradient_accumulation_steps;
}

int Settings::MicroBatches(int data_ranks) const {
  return reproducible ? reproducible_leaves / data_ranks : gradient_accumulation_steps;
}

std::int64_t Settings::SamplesPerRank(int data_ranks) const {
  if (reproducible) return (StepSamples(data_ranks) + reproducible_leaves - 1) / reproducible_leaves;
  return (GlobalBatch(data_ranks) + data_ranks - 1) / data_ranks;
}

absl::StatusOr<parallel::Schedule> Settings::PipelineSchedule(int pipeline_ranks, int data_ranks) const {
  PLAIT_RETURN_IF_ERROR(OneOf("pipeline-schedule", pipeline_schedule, parallel::ScheduleNames()));
  PLAIT_RETURN_IF_ERROR(AtLeast("pipeline-chunks", pipeline_chunks, 0));
  const absl::StatusOr<parallel::Schedule> schedule = parallel::MakeSchedule(
      *parallel::ParseScheduleKind(pipeline_schedule),
      {.ranks = pipeline_ranks, .chunks = pipeline_chunks, .micro_batches = MicroBatches(data_ranks)});
  if (schedule.ok()) return schedule;
  return Invalid(absl::StrCat("--pipeline-schedule=", schedule.status().message()));
}

absl::Status Settings::CheckReproducible(const std::vector<comm::MeshAxis>& axes) const {
  const auto is_power_of_two = [](int n) { return n > 0 && std::has_single_bit(static_cast<unsigned>(n)); };
  const auto leaves_are = [this](const std::string& what) {
    return Invalid(absl::StrCat("--reproducible-leaves=", reproducible_leaves, ": ", what));
  };
  bool has_stages = false;
  for (const comm::MeshAxis& axis : axes) {
    const bool covered = axis.name == "pp" || axis.name == "dp_replicate" || axis.name == "dp_shard";
    has_stages = has_stages || (axis.name == "pp" && axis.size > 1);
    if (axis.size > 1 && !covered) {
      return Invalid(
          absl::StrCat("--reproducible: not with ", axis.name, "=", axis.size,
                       " in --mesh, which splits products; expected pp, dp_replicate and dp_shard"));
    }
    if (is_power_of_two(axis.size)) continue;
    return Invalid(
        absl::StrCat("--reproducible: ", axis.size, " ranks along ", axis.name, "; expected a power of two"));
  }
  const int ranks = DataRanks(axes);
  if (!is_power_of_two(reproducible_leaves)) return leaves_are("expected a power of two");
  if (reproducible_leaves < ranks) {
    return leaves_are(absl::StrCat(ranks, " data-parallel ranks; expected at least one for each"));
  }
  if (StepSamples(ranks) % reproducible_leaves != 0) {
    return leaves_are(
        absl::StrCat("does not divide the ", StepSamples(ranks),
                     " samples of a step (--global-batch-size x --gradient-accumulation-steps)"));
  }
  if (threads != 1) return Invalid(absl::StrCat("--threads=", threads, ": expected 1 with --reproducible"));
  if (device == "cuda") return Invalid("--device=cuda: expected cpu with --reproducible");
  if (reduce_each_micro_batch) return Invalid("--reduce-each-micro-batch: not with --reproducible");
  if (pipeline_schedule == "1f1b" || pipeline_schedule == "gpipe") return absl::OkStatus();
  if (pipeline_schedule == "interleaved" && has_stages) return absl::OkStatus();
  return Invalid(absl::StrCat("--pipeline-schedule=", pipeline_schedule,
                              ": not with --reproducible; expected 1f1b, gpipe or, with pp, interleaved"));
}

absl::Status Settings::CheckTokens(const std::vector<comm::MeshAxis>& axes, const std::string& flag,
                                   std::int64_t tokens, const std::string& whole) const {
  const int cp = RanksAlong(axes, "cp"), tp = RanksAlong(axes, "tp");
  const bool ring = context_kind() == context_parallel::ContextKind::kRing;
  // A rank along cp has two chunks of a ring, or one part.
  const int chunks = cp == 1 ? 1 : ring ? 2 * cp : cp;
  const std::int64_t of_rank = (tokens + chunks - 1) / chunks * (chunks / cp);
  const auto refused = [&](std::int64_t count, absl::string_view where) {
    return Invalid(absl::StrCat(flag, ": ", count, " tokens", where, " for the ", tp,
                                " ranks of tp; --sequence-parallel needs a multiple"));
  };
  if (!sequence_parallel) return absl::OkStatus();
  if (of_rank % tp != 0) return refused(of_rank, cp == 1 ? "" : " on each rank of cp");
  if (whole.empty() || tokens % tp == 0) return absl::OkStatus();
  return refused(tokens, absl::StrCat(" in ", whole, ", which cp does not split,"));
}

absl::Status Settings::CheckLayers(const std::vector<comm::MeshAxis>& axes, const std::string& flag,
                                   std::int64_t blocks) const {
  if (sizes_are_unknown()) return absl::OkStatus();
  if (blocks > kMostBlocks) {
    return Invalid(absl::StrCat("--", flag, "=", blocks, ": expected at most ", kMostBlocks));
  }
  return lp.Solves(RanksAlong(axes, "lp")) ? lp.Check(blocks, flag) : absl::OkStatus();
}

// Along cp, and tp with sequence parallelism, ranks hold different parts of a state: their residual norms would differ,
// and they might stop after different numbers of iterations.
absl::Status Settings::CheckLayerParallel(const std::vector<comm::MeshAxis>& axes) const {
  const int ranks = RanksAlong(axes, "lp");
  if (!lp.Solves(ranks)) return absl::OkStatus();
  const std::string flag = ranks > 1 ? absl::StrCat("lp=", ranks, " in --mesh") : "--force-lp";
  for (const char* axis : {"pp", "cp", "ep"}) {
    if ((*axis == 'e' ? expert_ranks() : RanksAlong(axes, axis)) == 1) continue;
    return Invalid(
        absl::StrCat(flag, ": not with ", axis, "; expected dp_replicate, dp_shard and tp beside it"));
  }
  if (sequence_parallel) return Invalid(absl::StrCat("--sequence-parallel: not with ", flag));
  if (reproducible) return Invalid(absl::StrCat("--reproducible: not with ", flag));
  if (blocks_are_steps() && pipeline_schedule != "1f1b") {
    return Invalid(absl::StrCat("--pipeline-schedule=", pipeline_schedule, ": expected 1f1b with ", flag));
  }
  return absl::OkStatus();
}

std::vector<std::string> Settings::DerivedFlags(const std::vector<comm::MeshAxis>&) const {
  return {global_batch_size > 0 ? "batch_size" : "global_batch_size"};
}

absl::Status Settings::CheckGiven(const SettingsTable& table) const {
  if (!reproducible) PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("reproducible_leaves", "--reproducible"));
  if (!checkpoint_dir.empty()) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("grace", "--checkpoint-dir=DIR"));
  return table.CheckNoneGiven("keep_last", "--checkpoint-dir=DIR");
}

absl::Status Settings::CheckMemoryLimit() const { return Bytes(memory_limit).status(); }

absl::Status Settings::CheckNoDryRun() const {
  return dry_run ? Invalid("--dry-run: this program has none") : absl::OkStatus();
}

absl::Status Settings::CheckStart() const {
  PLAIT_RETURN_IF_ERROR(AtLeast("nproc", nproc, 0));
  PLAIT_RETURN_IF_ERROR(device::ParseDeviceKind(device).status());
  PLAIT_RETURN_IF_ERROR(AtLeast("threads", threads, 1));
  PLAIT_RETURN_IF_ERROR(Positive("timeout", timeout));
  PLAIT_RETURN_IF_ERROR(Positive("grace", grace));
  PLAIT_RETURN_IF_ERROR(AtLeast("checkpoint-interval", checkpoint_interval, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("keep-last", keep_last, 0));
  if (!checkpoint_dir.empty()) return absl::OkStatus();
  if (checkpoint_interval > 0) {
    return Invalid("--checkpoint-interval: expected --checkpoint-dir=DIR");
  }
  if (resume == "auto") return Invalid("--resume=auto: expected --checkpoint-dir=DIR");
  return absl::OkStatus();
}

absl::Status Settings::CheckShared(const std::vector<comm::MeshAxis>& axes) const {
  PLAIT_RETURN_IF_ERROR(CheckStart());
  PLAIT_RETURN_IF_ERROR(AtLeast("batch-size", batch_size, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("global-batch-size", global_batch_size, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("gradient-accumulation-steps", gradient_accumulation_steps, 1));
  PLAIT_RETURN_IF_ERROR(CheckStepSamples(*this, DataRanks(axes)));
  PLAIT_RETURN_IF_ERROR(CheckLayerParallel(axes));
  if (sequence_parallel && !absl::StrContains(mesh, "tp=")) {
    return Invalid("--sequence-parallel: expected tp in --mesh");
  }
  if (reproducible) PLAIT_RETURN_IF_ERROR(CheckReproducible(axes));
  if (reduce_each_micro_batch && !parallel::ShardsGradients(parsed_strategy())) {
    return Invalid(absl::StrCat("--reduce-each-micro-batch: ", strategy,
                                " replicates the gradients; expected --strategy=zero2 or fsdp"));
  }
  const bool has_stages = !axes.empty() && axes[0].name == "pp";
  PLAIT_RETURN_IF_ERROR(PipelineSchedule(has_stages ? axes[0].size : 1, DataRanks(axes)).status());
  PLAIT_RETURN_IF_ERROR(OneOf("context-attention", context_attention, {"ring", "ulysses"}));
  std::vector<std::string> types = {"float32", "float64"};
  for (const std::string& type : narrow_types()) types.push_back(type);
  PLAIT_RETURN_IF_ERROR(OneOf("dtype", dtype, types));
  PLAIT_RETURN_IF_ERROR(CheckMemoryLimit());
  if (offload_params && offload == "none") {
    return Invalid("--offload-params: expected --offload=DIR");
  }
  if (offload_params && !parallel::ShardsParameters(parsed_strategy())) {
    return Invalid(
        absl::StrCat("--offload-params: ", strategy, " replicates the parameters; expected --strategy=fsdp"));
  }
  const int ranks = DataRanks(axes);
  if (GlobalBatch(ranks) < ranks) {
    return Invalid(absl::StrCat("--global-batch-size=", global_batch_size, ": ", ranks,
                                " data-parallel ranks; expected at least one sample for each"));
  }
  return absl::OkStatus();
}

absl::Status AtLeast(const char* flag, double value, double least) {
  if (value >= least) return absl::OkStatus();
  return OutOfBounds(flag, value, absl::StrCat("must be at least ", least));
}

absl::Status Positive(const char* flag, double value) {
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return OutOfBounds(flag, value, "must be a positive number");
}

absl::Status Between(const char* flag, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return OutOfBounds(flag, value, absl::StrCat("expected ", low, " to ", high));
}

absl::Status Fraction(const char* flag, double value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return OutOfBounds(flag, value, "must be at least 0 and below 1");
}

absl::Status OneOf(const char* flag, const std::string& value, const std::vector<std::string>& choices) {
  for (const std::string& choice : choices) {
    if (value == choice) return absl::OkStatus();
  }
  return Invalid(absl::StrCat("--", flag, "=", value, ": expected ", absl::StrJoin(choices, " or ")));
}

int RanksAlong(const std::vector<comm::MeshAxis>& axes, const std::string& name) {
  for (const comm::MeshAxis& axis : axes) {
    if (axis.name == name) return axis.size;
  }
  return 1;
}

int DataRanks(const std::vector<comm::MeshAxis>& axes) {
  int ranks = 1;
  for (const comm::MeshAxis& axis : axes) {
    const bool splits_batch = axis.name == "dp_replicate" || axis.name == "dp_shard";
    ranks *= splits_batch ? axis.size : 1;
  }
  return ranks;
}

}  // namespace plait::training
