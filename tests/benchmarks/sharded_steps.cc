#include "tests/benchmarks/sharded_steps.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <time.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "base/keep_freed_memory.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/device_mesh.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/run_on_ranks.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/session_main.h"
#include "data/safetensors/writer.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/pipeline/executor.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/tensor/parallelize.h"
#include "tests/benchmarks/step_data.h"
#include "tools/device/device.h"

ABSL_FLAG(std::string, device, "cpu", "cpu or cuda: one GPU per rank");
ABSL_FLAG(std::string, strategy, "ddp", "ddp, zero1, zero2 or fsdp");
ABSL_FLAG(int, dp_replicate, 0, "replicas; 0: all ranks for ddp, else 1");
ABSL_FLAG(int, tp, 1, "ranks over which layers are split");
ABSL_FLAG(bool, sequence_parallel, false, "with --tp: rows between split layers are split too");
ABSL_FLAG(int, pp, 1, "ranks over which blocks are spread in stages");
ABSL_FLAG(int, micro_batches, 1, "of a step");
ABSL_FLAG(std::string, pipeline_schedule, "1f1b", "order of the micro-batches on the stages");
ABSL_FLAG(bool, reshard_after_forward, true, "fsdp: blocks are dropped after their forward pass");
ABSL_FLAG(int, nproc, 1, "ranks, where no launcher started them");
ABSL_FLAG(std::int64_t, steps, 30, "steps");
ABSL_FLAG(std::string, dtype, "float32", "float32, bfloat16 (parameters and activations) or float64");
ABSL_FLAG(std::int64_t, batch_size, 0, "blocks of all ranks; 0 here and below: the model's own");
ABSL_FLAG(std::int64_t, block_size, 0, "tokens of a block");
ABSL_FLAG(std::int64_t, n_layer, 0, "blocks of the model");
ABSL_FLAG(std::int64_t, n_head, 0, "heads of a block");
ABSL_FLAG(std::int64_t, n_embd, 0, "its width");
ABSL_FLAG(std::int64_t, vocab_size, 0, "different tokens");
ABSL_FLAG(double, clip, -1, "norm that gradients are clipped to; 0: none; -1: the model's own");
ABSL_FLAG(double, learning_rate, 1e-3, "of AdamW, with betas 0.9 and 0.95 and decay 0.1");
ABSL_FLAG(std::string, data, "", "a text; else random tokens");
ABSL_FLAG(std::string, profile, "", "file for the operators and kernels of the last step, for Perfetto");
ABSL_FLAG(std::string, write_initial, "", "safetensors file for the initial values");

namespace plait::benchmarks {
namespace {

namespace st = data::safetensors;
using parallel::Strategy;

double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

StepSizes FlaggedSizes(StepSizes sizes) {
  const auto take = [](std::int64_t flag, std::int64_t* size) {
    if (flag > 0) *size = flag;
  };
  take(absl::GetFlag(FLAGS_batch_size), &sizes.batch_size);
  take(absl::GetFlag(FLAGS_block_size), &sizes.block_size);
  take(absl::GetFlag(FLAGS_n_layer), &sizes.n_layer);
  take(absl::GetFlag(FLAGS_n_head), &sizes.n_head);
  take(absl::GetFlag(FLAGS_n_embd), &sizes.n_embd);
  take(absl::GetFlag(FLAGS_vocab_size), &sizes.vocab_size);
  if (absl::GetFlag(FLAGS_clip) >= 0) sizes.clip_norm = absl::GetFlag(FLAGS_clip);
  return sizes;
}

// Of parameters between steps, and while they are unsharded.
struct Types {
  at::ScalarType master = at::kFloat, compute = at::kFloat;
};

absl::StatusOr<Types> FlaggedTypes() {
  const std::string name = absl::GetFlag(FLAGS_dtype);
  if (name == "float32") return Types();
  if (name == "bfloat16") return Types{at::kFloat, at::kBFloat16};
  if (name == "float64") return Types{at::kDouble, at::kDouble};
  return absl::InvalidArgumentError(
      absl::StrCat("--dtype=", name, ": expected float32, bfloat16 or float64"));
}

// With LibTorch's profiler, which slows the step down.
void Profile(const std::string& path, const std::function<void()>& step) {
  using torch::autograd::profiler::ActivityType;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<ActivityType> activities = {ActivityType::CPU, ActivityType::CUDA};
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  step();
  torch::autograd::profiler::disableProfiler()->save(path);
}

class Run {
 public:
  Run(std::string name, const StepSizes& sizes, std::unique_ptr<models::BlockModel> model, at::Device device,
      comm::Session& session)
      : name_(std::move(name)),
        sizes_(sizes),
        model_(std::move(model)),
        device_(device),
        session_(session),
        world_(session.world()) {}

  absl::Status Prepare(const Types& types);
  absl::Status Steps();

 private:
  absl::StatusOr<comm::DeviceMesh> MakeMesh(Strategy strategy) const;
  absl::Status SplitLayers(const comm::DeviceMesh& mesh);
  void Initialize();
  absl::Status WriteInitial(const std::string& path);
  void Step(std::int64_t step, const StepBatch& batch);

  int copies() const { return absl::GetFlag(FLAGS_tp) * absl::GetFlag(FLAGS_pp); }
  int data_ranks() const { return world_.size() / copies(); }

  std::string name_;
  const StepSizes& sizes_;
  std::unique_ptr<models::BlockModel> model_;
  at::Device device_;
  comm::Session& session_;
  const comm::Communicator& world_;
  std::unique_ptr<parallel::DataParallel> engine_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
  std::unique_ptr<parallel::PipelineExecutor> pipeline_;
};

absl::StatusOr<comm::DeviceMesh> Run::MakeMesh(Strategy strategy) const {
  int replicas = absl::GetFlag(FLAGS_dp_replicate);
  if (replicas == 0) replicas = strategy == Strategy::kDdp ? data_ranks() : 1;
  return comm::DeviceMesh::Create(world_, {{"pp", absl::GetFlag(FLAGS_pp)},
                                           {"dp_replicate", replicas},
                                           {"dp_shard", data_ranks() / replicas},
                                           {"tp", absl::GetFlag(FLAGS_tp)}});
}

absl::Status Run::SplitLayers(const comm::DeviceMesh& mesh) {
  auto* const model = dynamic_cast<tensor_parallel::SplittableModel*>(model_.get());
  return tensor_parallel::Parallelize(*model, mesh,
                                      tensor_parallel::DefaultPlan(*model, mesh.axis("tp").size()),
                                      {.sequence_parallel = absl::GetFlag(FLAGS_sequence_parallel)});
}

// The whole model on every rank, so that its values do not depend on who has which stage.
void Run::Initialize() {
  const at::NoGradGuard no_grad;
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(1337);
  const std::vector<models::ParameterUnit> units = model_->units();
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const models::ParameterSpec& p : units[unit].parameters) {
      models::Materialize(p.tensor, at::empty(p.tensor.sizes(), p.tensor.options().device(device_)));
    }
    model_->ResetParameters(unit);
  }
}

absl::Status Run::Prepare(const Types& types) {
  PLAIT_ASSIGN_OR_RETURN(const Strategy strategy, parallel::ParseStrategy(absl::GetFlag(FLAGS_strategy)));
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh, MakeMesh(strategy));
  PLAIT_RETURN_IF_ERROR(SplitLayers(mesh));
  Initialize();
  PLAIT_ASSIGN_OR_RETURN(const parallel::ScheduleKind kind,
                         parallel::ParseScheduleKind(absl::GetFlag(FLAGS_pipeline_schedule)));
  PLAIT_ASSIGN_OR_RETURN(const parallel::Schedule schedule,
                         parallel::MakeSchedule(kind, {.ranks = absl::GetFlag(FLAGS_pp),
                                                       .micro_batches = absl::GetFlag(FLAGS_micro_batches)}));
  PLAIT_ASSIGN_OR_RETURN(
      const std::vector<parallel::StageRange> stages,
      parallel::SplitBlocks(parallel::CostsByParameters(model_->units()), schedule.stages()));
  if (world_.rank() == 0 && stages.size() > 1) std::printf("%s\n", parallel::ToText(stages).c_str());
  std::vector<models::ParameterUnit> units;
  for (const parallel::RankUnit& unit :
       parallel::UnitsOfRank(model_->units(), stages, schedule.rank_of_stage, mesh.axis("pp").rank())) {
    units.push_back(unit.unit);
  }
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh with_ends, parallel::WithEnds(mesh, schedule.rank_of_stage));
  PLAIT_ASSIGN_OR_RETURN(engine_, parallel::DataParallel::Create(
                                      with_ends, units,
                                      {.strategy = strategy,
                                       .reshard_after_forward = absl::GetFlag(FLAGS_reshard_after_forward),
                                       .compute_type = types.compute}));
  PLAIT_ASSIGN_OR_RETURN(
      pipeline_, parallel::PipelineExecutor::Create(*engine_, *model_, mesh.axis("pp"), schedule, stages));
  optimizer_ = std::make_unique<parallel::ShardedOptimizer>(
      *engine_, parallel::ShardedOptimizerOptions{
                    .lr = absl::GetFlag(FLAGS_learning_rate), .beta2 = 0.95, .weight_decay = 0.1});
  const std::string initial = base::FromUser(absl::GetFlag(FLAGS_write_initial));
  return initial.empty() ? absl::OkStatus() : WriteInitial(initial);
}

absl::Status Run::WriteInitial(const std::string& path) {
  std::vector<std::pair<std::string, at::Tensor>> values;
  engine_->VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters) {
      values.emplace_back(p.name, p.tensor.detach().to(at::kCPU, at::kDouble, /*non_blocking=*/false,
                                                       /*copy=*/true));
    }
  });
  std::vector<st::TensorView> views;
  for (const auto& [name, tensor] : values) {
    views.push_back({name, {st::DType::kF64, tensor.sizes().vec()}, tensor.const_data_ptr()});
  }
  return world_.Agree(world_.rank() == 0 ? st::WriteFile(path, views, {{"format", "pt"}}) : absl::OkStatus());
}

void Run::Step(std::int64_t step, const StepBatch& batch) {
  world_.Barrier();
  const double begin = device::SecondsWhenDone(device_), cpu_begin = ProcessorSeconds();
  const std::int64_t samples = batch.inputs.size(0) / pipeline_->schedule().micro_batches;
  const double factor = 1 / static_cast<double>(batch.inputs.numel() * data_ranks());
  const parallel::PipelineStep done = pipeline_->Run([&](int k) {
    models::Batch part = {batch.inputs.narrow(0, k * samples, samples),
                          batch.targets.narrow(0, k * samples, samples)};
    part.valid_targets = part.targets.numel();
    return parallel::PipelineMicroBatch{part, factor};
  });
  optimizer_->Step({.clip_norm = sizes_.clip_norm});
  // Parameters that are on their way belong to the step.
  engine_->WaitForParameters();
  const double seconds = device::SecondsWhenDone(device_) - begin, cpu = ProcessorSeconds() - cpu_begin;
  // Ranks of tp have the same loss.
  double whole[1] = {0};
  for (const models::LossSum& loss : done.losses) {
    whole[0] += loss.sum.item<double>() * factor / absl::GetFlag(FLAGS_tp);
  }
  world_.AllReduce(comm::BufferOf(absl::MakeSpan(whole)), comm::ReduceOp::kSum);
  if (world_.rank() != 0) return;
  std::printf("%s step=%lld loss=%.17g dt=%.6f cpu=%.6f\n", name_.c_str(), static_cast<long long>(step),
              whole[0], seconds, cpu);
  std::fflush(stdout);
}

absl::Status Run::Steps() {
  const int parts = data_ranks() * absl::GetFlag(FLAGS_micro_batches);
  if (sizes_.batch_size % parts != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--batch-size=", sizes_.batch_size,
                                                   ": expected a multiple of ", parts,
                                                   ", data ranks times micro-batches"));
  }
  PLAIT_ASSIGN_OR_RETURN(const StepData data,
                         StepData::Make({.vocab_size = sizes_.vocab_size,
                                         .block_size = sizes_.block_size,
                                         .batch_size = sizes_.batch_size,
                                         .text = base::FromUser(absl::GetFlag(FLAGS_data))}));
  session_.EnterSteps();
  for (std::int64_t step = 0; step < absl::GetFlag(FLAGS_steps); ++step) {
    const int data_rank = world_.rank() / absl::GetFlag(FLAGS_tp) % data_ranks();
    const StepBatch batch = data.Batch(step, data_rank, data_ranks());
    const auto run = [&] { Step(step, {batch.inputs.to(device_), batch.targets.to(device_)}); };
    const std::string profile = base::FromUser(absl::GetFlag(FLAGS_profile));
    if (profile.empty() || step + 1 < absl::GetFlag(FLAGS_steps)) {
      run();
    } else {
      Profile(profile, run);
    }
  }
  return absl::OkStatus();
}

base::ToolUsage Usage(const std::string& name) {
  return {
      .name = name,
      .summary = "Training steps of a model with initial values and blocks that its PyTorch peer has too.",
      .examples = {name + " --nproc=2 --strategy=fsdp --steps=30"},
      .groups = {}};
}

}  // namespace

int ShardedStepsMain(int argc, char** argv, const std::string& name, const StepSizes& sizes,
                     const MakeModel& make) {
  const comm::Launcher launcher = comm::DetectLauncher();
  base::ParseFlagsOrExit(argc, argv, Usage(name), launcher.rank);
  if (absl::GetFlag(FLAGS_nproc) > 1 && launcher.kind == comm::LauncherKind::kNone) {
    return comm::RunOnRanks(absl::GetFlag(FLAGS_nproc), argv);
  }
  base::KeepFreedMemory();
  const comm::SessionOptions options = {.device_backend = comm::NcclBackendFactory()};
  return comm::RunMain(argc, argv, options, [&](comm::Session& session) -> absl::Status {
    PLAIT_ASSIGN_OR_RETURN(const device::DeviceKind kind,
                           device::ParseDeviceKind(absl::GetFlag(FLAGS_device)));
    PLAIT_ASSIGN_OR_RETURN(const device::DevicePlan plan,
                           device::SelectDevice({.kind = kind, .threads = 1}, session.world()));
    PLAIT_ASSIGN_OR_RETURN(const Types types, FlaggedTypes());
    const StepSizes flagged = FlaggedSizes(sizes);
    Run run(name, flagged, make(flagged, types.master), plan.device(), session);
    PLAIT_RETURN_IF_ERROR(run.Prepare(types));
    return run.Steps();
  });
}

}  // namespace plait::benchmarks
