// Layer-parallel training steps of residual networks: TorchBraid's MNIST example (32 layers of 3 channels, 3 levels,
// factor 4, 2 forward and 1 backward iterations, batch 50), beside peer_odenet.py,
//
//   odenet_step --nproc=2 --steps=20
//   odenet_step step=3 loss=2.3018 dt=0.0412 cpu=0.0411
//   odenet_work ranks=2 forward=80 backward=32 bias=0.079
//
// or, with --problem, a network of train_odenet. dt: of the slowest rank, gradients set to zero, forward, loss and
// backward; an SGD step follows, outside. The second line is of the last parameters: evaluations of the layers and of
// their adjoints by all ranks, and |gradient - exact gradient| / |exact gradient|.
//
//   odenet_step --problem=peaks --layers=64 --nproc=2 --batches=20        # the lines of step_lines.h, for scaling
//   odenet_step --problem=peaks --layers=64 --biases --train_steps=100    # behind 100 steps of Adam, for many solvers:
//   lp_bias ranks=1 steps=64 problem=peaks batch=64 data=real setting=levels=3/... trained=100 bias=0.021
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "base/keep_freed_memory.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/supervision/run_on_ranks.h"
#include "comm/session_main.h"
#include "tests/benchmarks/odenet_run.h"
#include "tests/benchmarks/setting.h"
#include "tests/benchmarks/settings_to_try.h"
#include "tests/benchmarks/step_lines.h"

ABSL_FLAG(int, nproc, 1, "ranks, where no launcher started them");
ABSL_FLAG(std::string, problem, "torchbraid", "torchbraid, or a problem of train_odenet");
ABSL_FLAG(std::string, data, "", "folder of the problem's data, as train_odenet's");
ABSL_FLAG(std::int64_t, layers, 0, "residual layers; 0: as the problem has");
ABSL_FLAG(std::int64_t, channels, 0, "of a state; 0: as the problem has");
ABSL_FLAG(std::int64_t, batch_size, 0, "samples; 0: as the problem has");
ABSL_FLAG(int, levels, 3, "of the solver");
ABSL_FLAG(int, cfactor, 4, "coarsening factor");
ABSL_FLAG(int, fwd_iters, 2, "iterations forward");
ABSL_FLAG(int, bwd_iters, 1, "iterations backward");
ABSL_FLAG(bool, serial, false, "one layer after the other, by autograd alone, on one rank");
ABSL_FLAG(std::int64_t, steps, 20, "steps, each on the same samples");
ABSL_FLAG(double, learning_rate, 0.01, "of the SGD step");
ABSL_FLAG(std::string, write_initial, "", "safetensors file for the initial values, in float32");
ABSL_FLAG(int, batches, 0, "instead of steps: batches whose parts are measured");
ABSL_FLAG(bool, biases, false, "instead of steps: the bias of the gradient with many solvers, on one rank");
ABSL_FLAG(double, enough_bias, 0, "no more iterations are tried with the same levels and factor");
ABSL_FLAG(int, train_steps, 0, "steps of Adam before the biases, one layer after the other");

namespace plait::benchmarks {
namespace {

mgrit::LayerParallelOptions SolverOptions() {
  return mgrit::MakeLayerParallelOptions(absl::GetFlag(FLAGS_levels), absl::GetFlag(FLAGS_cfactor),
                                         absl::GetFlag(FLAGS_fwd_iters), absl::GetFlag(FLAGS_bwd_iters));
}

void Steps(OdeNetRun& run) {
  const comm::Communicator& world = run.communicator();
  for (std::int64_t step = 0; step < absl::GetFlag(FLAGS_steps); ++step) {
    const BatchSeconds spent = absl::GetFlag(FLAGS_serial) ? run.RunSerialBatch() : run.RunBatch();
    double seconds = spent.total();
    world.AllReduce(comm::BufferOf(absl::MakeSpan(&seconds, 1)), comm::ReduceOp::kMax);
    run.Descend(absl::GetFlag(FLAGS_learning_rate));
    if (world.rank() > 0) continue;
    std::printf("odenet_step step=%lld loss=%.9g dt=%.6f cpu=%.6f\n", static_cast<long long>(step),
                run.last_loss(), seconds, spent.processor);
    std::fflush(stdout);
  }
}

void Work(OdeNetRun& run) {
  const comm::Communicator& world = run.communicator();
  run.RunBatch();
  std::int64_t evaluations[] = {0, 0};
  for (const std::int64_t steps : run.solver().last_forward().work.steps) evaluations[0] += steps;
  for (const std::int64_t steps : run.solver().last_backward().work.steps) evaluations[1] += steps;
  world.AllReduce(comm::BufferOf(absl::MakeSpan(evaluations)));
  const double bias = run.Bias(run.ExactGradients());
  if (world.rank() > 0) return;
  std::printf("odenet_work ranks=%d forward=%lld backward=%lld bias=%.6f\n", world.size(),
              static_cast<long long>(evaluations[0]), static_cast<long long>(evaluations[1]), bias);
}

void Biases(OdeNetRun& run) {
  const int trained = absl::GetFlag(FLAGS_train_steps);
  run.TrainSerially(trained);
  const std::vector<at::Tensor> exact = run.ExactGradients();
  std::set<std::pair<int, int>> done;  // levels and factors
  for (const mgrit::LayerParallelOptions& solver : DepthSolversToTry(run.solver().steps())) {
    const std::pair<int, int> grid = {solver.forward.max_levels, solver.forward.cfactors[0]};
    if (done.count(grid) > 0 || !run.solver().SetOptions(solver).ok()) continue;
    const double bias = run.Bias(exact);
    if (bias <= absl::GetFlag(FLAGS_enough_bias)) done.insert(grid);
    std::printf("%s trained=%d bias=%.6g\n", LineHead("lp_bias", run, TextOf(solver)).c_str(), trained, bias);
    std::fflush(stdout);
  }
}

absl::Status Main(comm::Session& session) {
  at::set_num_threads(1);
  PLAIT_ASSIGN_OR_RETURN(const OdeNetCase example,
                         OpenCase({.problem = absl::GetFlag(FLAGS_problem),
                                   .data = base::FromUser(absl::GetFlag(FLAGS_data)),
                                   .layers = absl::GetFlag(FLAGS_layers),
                                   .channels = absl::GetFlag(FLAGS_channels),
                                   .batch = absl::GetFlag(FLAGS_batch_size)},
                                  session.world()));
  PLAIT_RETURN_IF_ERROR(mgrit::LayerParallel::Check(SolverOptions(), example.network.layers));
  const bool alone = absl::GetFlag(FLAGS_serial) || absl::GetFlag(FLAGS_biases);
  if (alone && session.world().size() > 1)
    return absl::InvalidArgumentError("--serial, --biases: expected one rank");
  OdeNetRun run(example, SolverOptions(), session.world());
  const std::string initial = base::FromUser(absl::GetFlag(FLAGS_write_initial));
  if (!initial.empty()) PLAIT_RETURN_IF_ERROR(run.WriteInitial(initial));
  session.EnterSteps();
  if (absl::GetFlag(FLAGS_batches) > 0) {
    const int batches = absl::GetFlag(FLAGS_batches);
    MeasureSteps(run, TextOf(SolverOptions()), {.batches = batches, .warmup = std::min(3, 1 + batches / 8)});
  } else if (absl::GetFlag(FLAGS_biases)) {
    Biases(run);
  } else {
    Steps(run);
    if (!absl::GetFlag(FLAGS_serial) && absl::GetFlag(FLAGS_steps) > 0) Work(run);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  using namespace plait;
  const comm::Launcher launcher = comm::DetectLauncher();
  base::ParseFlagsOrExit(argc, argv,
                         {.name = "odenet_step",
                          .summary = "Times layer-parallel training steps of residual networks.",
                          .examples = {"odenet_step --nproc=2 --steps=20",
                                       "odenet_step --problem=peaks --layers=64 --nproc=2 --batches=20",
                                       "odenet_step --problem=peaks --layers=64 --biases --train_steps=100"},
                          .groups = {}},
                         launcher.rank);
  if (absl::GetFlag(FLAGS_nproc) > 1 && launcher.kind == comm::LauncherKind::kNone) {
    return comm::RunOnRanks(absl::GetFlag(FLAGS_nproc), argv);
  }
  base::KeepFreedMemory();
  return comm::RunMain(argc, argv, {}, benchmarks::Main);
}
