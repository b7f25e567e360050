// Layer-parallel training steps of the convolutional ODE network of TorchBraid's MNIST example (32 layers of 3
// channels, 3 levels, factor 4, 2 forward and 1 backward iterations, batch 50), beside peer_odenet.py:
//
//   odenet_step --nproc=2 --steps=20
//   odenet_step step=3 loss=2.3018 dt=0.0412 cpu=0.0411
//   odenet_work ranks=2 forward=88 backward=62 bias=0.12
//
// dt: of the slowest rank, gradients set to zero, forward, loss and backward; an SGD step follows, outside. The second
// line is of the last parameters: evaluations of the layers and of their adjoints by all ranks, and |gradient - exact
// gradient| / |exact gradient|. The example's opening layer repeats the image and has no parameters: here it is a fixed
// convolution that does the same.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sin.h>
#include <time.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "base/flags.h"
#include "base/keep_freed_memory.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/relaunch.h"
#include "comm/session_main.h"
#include "data/safetensors/writer.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "models/odenet/odenet.h"

ABSL_FLAG(int, nproc, 1, "ranks, where no launcher started them");
ABSL_FLAG(std::int64_t, layers, 32, "residual layers");
ABSL_FLAG(std::int64_t, channels, 3, "of an image's state");
ABSL_FLAG(std::int64_t, batch_size, 50, "images");
ABSL_FLAG(int, levels, 3, "of the solver");
ABSL_FLAG(int, cfactor, 4, "coarsening factor");
ABSL_FLAG(int, fwd_iters, 2, "iterations forward");
ABSL_FLAG(int, bwd_iters, 1, "iterations backward");
ABSL_FLAG(bool, serial, false, "one layer after the other, by autograd alone, on one rank");
ABSL_FLAG(std::int64_t, steps, 20, "steps, each on the same images");
ABSL_FLAG(double, learning_rate, 0.01, "of the SGD step");
ABSL_FLAG(std::string, write_initial, "", "safetensors file for the initial values, in float32");

namespace plait::benchmarks {
namespace {

namespace st = data::safetensors;

double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Grey values between 0 and 1 from the sine of n^2; image k has class 7 k modulo 10. peer_odenet.py has the same.
models::Batch BatchOf(std::int64_t images) {
  const at::Tensor n = at::arange(images * 784, at::kDouble).remainder(100003);
  return {(0.5 + 0.5 * at::sin(n * n * 0.37)).view({images, 1, 28, 28}).to(at::kFloat),
          at::remainder(at::arange(images, at::kLong) * 7, 10)};
}

odenet::OdeNetOptions NetworkOptions() {
  return {.form = odenet::Form::kConv2d,
          .sample = {28, 28},
          .channels = absl::GetFlag(FLAGS_channels),
          .layers = absl::GetFlag(FLAGS_layers),
          .final_time = 1,
          .activation = odenet::Activation::kRelu,
          .hidden = 32,
          .classes = 10};
}

mgrit::LayerParallelOptions SolverOptions() {
  return mgrit::MakeLayerParallelOptions(absl::GetFlag(FLAGS_levels), absl::GetFlag(FLAGS_cfactor),
                                         absl::GetFlag(FLAGS_fwd_iters), absl::GetFlag(FLAGS_bwd_iters));
}

class Run {
 public:
  explicit Run(const comm::Communicator& world)
      : world_(world),
        batch_(BatchOf(absl::GetFlag(FLAGS_batch_size))),
        net_(NetworkOptions(), at::kFloat),
        solver_(
            world, [this](std::int64_t layer) { return net_.blocks()[layer]; }, net_.options().layers,
            static_cast<double>(net_.options().layers), SolverOptions()),
        own_(solver_.Parameters()) {
    RepeatImages();
    // Of the closing layer, which every rank has.
    for (const models::ParameterSpec& p : net_.units()[0].parameters) {
      if (p.used_by == models::UsedBy::kEpilogue) closing_.push_back(p.tensor);
    }
  }

  absl::Status WriteInitial(const std::string& path) const;
  void Steps();
  void Work();

 private:
  void RepeatImages();
  at::Tensor Loss();
  void ClearGradients();
  void Descend();
  std::vector<at::Tensor> Gradients() const;
  template <typename Number>
  Number Over(Number value, comm::ReduceOp op) const {
    world_.AllReduce(comm::BufferOf(absl::MakeSpan(&value, 1)), op);
    return value;
  }

  const comm::Communicator& world_;
  models::Batch batch_;
  odenet::OdeNet net_;
  mgrit::LayerParallel solver_;
  std::vector<at::Tensor> own_, closing_;
};

void Run::RepeatImages() {
  const at::NoGradGuard no_grad;
  for (const models::ParameterSpec& p : net_.units()[0].parameters) {
    if (p.used_by != models::UsedBy::kPrologue) continue;
    p.tensor.zero_();
    if (p.tensor.dim() == 4) p.tensor.select(2, 1).select(2, 1).fill_(1);
    at::Tensor fixed = p.tensor;
    fixed.set_requires_grad(false);
  }
}

absl::Status Run::WriteInitial(const std::string& path) const {
  std::vector<st::TensorView> views;
  for (const models::ParameterUnit& unit : net_.units()) {
    for (const models::ParameterSpec& p : unit.parameters)
      views.push_back({p.name, {st::DType::kF32, p.tensor.sizes().vec()}, p.tensor.const_data_ptr()});
  }
  return world_.Agree(world_.rank() == 0 ? st::WriteFile(path, views, {{"format", "pt"}}) : absl::OkStatus());
}

at::Tensor Run::Loss() {
  if (absl::GetFlag(FLAGS_serial)) {
    const models::LossSum loss = models::RunModel(net_, batch_);
    return loss.sum.div(loss.count);
  }
  const models::BlockState opened = net_.Prologue(batch_, {});
  const models::LossSum loss = net_.Epilogue({solver_.Forward(opened.hidden)}, batch_);
  return loss.sum.div(loss.count);
}

void Run::ClearGradients() {
  for (const std::vector<at::Tensor>* const group : {&own_, &closing_}) {
    for (const at::Tensor& parameter : *group) parameter.mutable_grad() = at::Tensor();
  }
}

void Run::Descend() {
  const at::NoGradGuard no_grad;
  for (const std::vector<at::Tensor>* const group : {&own_, &closing_}) {
    for (const at::Tensor& parameter : *group)
      parameter.add_(parameter.grad(), -absl::GetFlag(FLAGS_learning_rate));
  }
}

void Run::Steps() {
  for (std::int64_t step = 0; step < absl::GetFlag(FLAGS_steps); ++step) {
    world_.Barrier();
    const double begin = NowSeconds(), cpu_begin = ProcessorSeconds();
    ClearGradients();
    const at::Tensor loss = Loss();
    loss.backward();
    const double cpu = ProcessorSeconds() - cpu_begin;
    const double seconds = Over(NowSeconds() - begin, comm::ReduceOp::kMax);
    Descend();
    if (world_.rank() > 0) continue;
    std::printf("odenet_step step=%lld loss=%.9g dt=%.6f cpu=%.6f\n", static_cast<long long>(step),
                loss.item<double>(), seconds, cpu);
    std::fflush(stdout);
  }
}

std::vector<at::Tensor> Run::Gradients() const {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : own_) gradients.push_back(parameter.grad().to(at::kDouble));
  for (std::size_t i = 0; world_.rank() == 0 && i < closing_.size(); ++i)
    gradients.push_back(closing_[i].grad().to(at::kDouble));
  return gradients;
}

void Run::Work() {
  ClearGradients();
  Loss().backward();
  const std::vector<at::Tensor> found = Gradients();
  const auto evaluations = [&](const mgrit::Solution& solution) {
    const std::vector<std::int64_t>& steps = solution.work.steps;
    return Over(std::accumulate(steps.begin(), steps.end(), std::int64_t{0}), comm::ReduceOp::kSum);
  };
  const std::int64_t forward = evaluations(solver_.last_forward()),
                     backward = evaluations(solver_.last_backward());
  ClearGradients();
  solver_.set_propagation(mgrit::Propagation::kSerial);
  Loss().backward();
  const std::vector<at::Tensor> exact = Gradients();
  double distance = 0, length = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    distance += (found[i] - exact[i]).square().sum().item<double>();
    length += exact[i].square().sum().item<double>();
  }
  const double bias = std::sqrt(Over(distance, comm::ReduceOp::kSum) / Over(length, comm::ReduceOp::kSum));
  if (world_.rank() > 0) return;
  std::printf("odenet_work ranks=%d forward=%lld backward=%lld bias=%.6f\n", world_.size(),
              static_cast<long long>(forward), static_cast<long long>(backward), bias);
}

absl::Status Main(comm::Session& session) {
  at::set_num_threads(1);
  PLAIT_RETURN_IF_ERROR(mgrit::LayerParallel::Check(SolverOptions(), absl::GetFlag(FLAGS_layers)));
  if (absl::GetFlag(FLAGS_serial) && session.world().size() > 1)
    return absl::InvalidArgumentError("--serial: expected one rank");
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(1337);
  Run run(session.world());
  const std::string initial = base::FromUser(absl::GetFlag(FLAGS_write_initial));
  if (!initial.empty()) PLAIT_RETURN_IF_ERROR(run.WriteInitial(initial));
  session.EnterSteps();
  run.Steps();
  if (!absl::GetFlag(FLAGS_serial) && absl::GetFlag(FLAGS_steps) > 0) run.Work();
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  using namespace plait;
  const comm::Launcher launcher = comm::DetectLauncher();
  base::ParseFlagsOrExit(argc, argv,
                         {.name = "odenet_step",
                          .summary = "Times layer-parallel training steps of a convolutional ODE network.",
                          .examples = {"odenet_step --nproc=2 --steps=20"},
                          .groups = {}},
                         launcher.rank);
  if (absl::GetFlag(FLAGS_nproc) > 1 && launcher.kind == comm::LauncherKind::kNone) {
    const absl::Status failed = comm::RelaunchOnRanks(absl::GetFlag(FLAGS_nproc), argv);
    std::fprintf(stderr, "odenet_step: %s\n", std::string(failed.message()).c_str());
    return 1;
  }
  base::KeepFreedMemory();
  return comm::RunMain(argc, argv, {}, benchmarks::Main);
}
