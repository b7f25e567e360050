// What cheaper coarse steps and warm starts do to layer-parallel gradients (docs/decisions/022):
//
//   bazel run //tests/benchmarks:coarse_steps -- --problem=peaks
//   bazel run //tests/benchmarks:coarse_steps -- --problem=mnist --data=DIR
//
// Trains a residual network of train_odenet serially, epoch by epoch, and after some epochs compares gradients of one
// batch with the exact one, after 1, 2, ... iterations in both directions: with coarse steps in float32, in bf16 (the
// whole step, or its rate alone), at half the resolution or width (the rate of the averaged state, brought back), and
// with float32 steps that begin at the states of the same batch one epoch before. Then trains with each kind of coarse
// step. Two levels, one rank, fixed seeds; nothing is timed.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "base/flags.h"
#include "base/status_macros.h"
#include "comm/communicator.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "models/odenet/odenet.h"
#include "tools/odenet_training/problem.h"
#include "tools/odenet_training/settings.h"

ABSL_FLAG(std::string, problem, "peaks", "peaks or mnist");
ABSL_FLAG(std::string, data, "", "mnist: directory of IDX files");
ABSL_FLAG(int, epochs, 4, "of training");
ABSL_FLAG(int, most_iterations, 5, "in both directions");

namespace plait::benchmarks {
namespace {

enum class Coarse { kSame, kBf16, kBf16Rate, kHalf };
constexpr std::pair<Coarse, const char*> kKinds[] = {{Coarse::kSame, "float32"},
                                                     {Coarse::kBf16, "bf16 steps"},
                                                     {Coarse::kBf16Rate, "bf16 rates"},
                                                     {Coarse::kHalf, "half size"}};

base::ToolUsage Usage() {
  return {.name = "coarse_steps",
          .summary = "Gradients of layer-parallel networks with cheaper coarse steps and warm starts.",
          .examples = {"coarse_steps", "coarse_steps --problem=mnist --data=mnist"}};
}

// The mean of each pair of channels of a dense state, and its transpose times 2.
at::Tensor PairMeans(const at::Tensor& u) { return u.unflatten(1, {-1, 2}).mean(2); }
at::Tensor Pairs(const at::Tensor& u) { return u.repeat_interleave(2, 1); }

// A layer of odenet::OdeNet whose coarse steps are of another kind.
class Layer final : public models::Block {
 public:
  Layer(std::shared_ptr<models::Block> fine, double step, Coarse kind)
      : fine_(std::move(fine)), step_(step), kind_(kind) {}

  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    if (context.level == 0 || kind_ == Coarse::kSame) return fine_->Forward(in, context);
    const double dt = step_ * context.dt;
    if (kind_ == Coarse::kHalf) return {at::add(in.hidden, HalfRate(in.hidden), dt)};
    const at::Tensor u = in.hidden.to(at::kBFloat16);
    const at::Tensor rate = Rate(u, at::kBFloat16);
    if (kind_ == Coarse::kBf16Rate) return {at::add(in.hidden, rate.to(at::kFloat), dt)};
    return {at::add(u, rate, dt).to(at::kFloat)};
  }
  std::vector<at::Tensor> Parameters() const override { return fine_->Parameters(); }

 private:
  at::Tensor Rate(at::Tensor u, at::ScalarType type) const {
    const std::vector<at::Tensor> theta = Parameters();
    for (std::size_t i = 0; i < theta.size(); i += 2) {
      const at::Tensor weight = theta[i].to(type), bias = theta[i + 1].to(type);
      u = weight.dim() == 2 ? at::tanh(at::linear(u, weight, bias))
                            : at::relu(at::conv2d(u, weight, bias, 1, 1));
    }
    return u;
  }
  // Dense: R K P of the weight between pairs of channels. Images: the same convolution of a coarser image.
  at::Tensor HalfRate(const at::Tensor& u) const {
    if (u.dim() == 4) {
      const at::Tensor rate = Rate(at::avg_pool2d(u, 2), at::kFloat);
      return at::upsample_nearest2d(rate, {u.size(2), u.size(3)});
    }
    const std::vector<at::Tensor> theta = Parameters();
    const at::Tensor weight = 2 * PairMeans(PairMeans(theta[0]).t()).t();
    return Pairs(at::tanh(at::linear(PairMeans(u), weight, PairMeans(theta[1].unsqueeze(0)).squeeze(0))));
  }

  std::shared_ptr<models::Block> fine_;
  double step_;
  Coarse kind_;
};

class Experiment {
 public:
  Experiment(const odenet::OdeNetOptions& options, int cfactor, const odenet_training::Problem& problem)
      : options_(options), cfactor_(cfactor), problem_(problem), begin_(NewNet()), net_(NewNet()) {}

  void CompareGradients() {
    torch::optim::Adam adam(Trained(net_), torch::optim::AdamOptions(kLr));
    const models::Batch batch = Batches(problem_.train, 0)[0];
    std::vector<at::Tensor> before;
    for (int epoch = 1; epoch <= absl::GetFlag(FLAGS_epochs); ++epoch) {
      before = Values(net_);
      Train(net_, adam, epoch, nullptr);
      const at::Tensor exact = Gradient(net_, batch, nullptr);
      std::printf("after epoch %d: |gradient - exact| / |exact| after 1 ... %d iterations\n", epoch,
                  absl::GetFlag(FLAGS_most_iterations));
      for (const auto& [kind, name] : kKinds) PrintRow(name, Biases(kind, batch, exact));
      PrintRow("float32, warm", WarmBiases(before, batch, exact));
    }
  }

  // With two iterations forward and one backward.
  void CompareTraining() {
    for (const auto& [kind, name] : kKinds) {
      odenet::OdeNet net = NewNet();
      SetValues(net, Values(begin_));
      torch::optim::Adam adam(Trained(net), torch::optim::AdamOptions(kLr));
      mgrit::LayerParallel solver = Solver(net, kind);
      solver.set_iterations(2, 1);
      for (int epoch = 1; epoch <= absl::GetFlag(FLAGS_epochs); ++epoch) Train(net, adam, epoch, &solver);
      std::printf("trained with %-14s val_acc=%.2f\n", name, Accuracy(net));
    }
  }

 private:
  static constexpr double kLr = 3e-3;
  static constexpr std::int64_t kBatch = 64;

  odenet::OdeNet NewNet() const { return {options_, at::kFloat}; }
  static std::vector<at::Tensor> Trained(const odenet::OdeNet& net) {
    std::vector<at::Tensor> all;
    for (const models::ParameterUnit& unit : net.units()) {
      for (const models::ParameterSpec& spec : unit.parameters) all.push_back(spec.tensor);
    }
    return all;
  }
  static std::vector<at::Tensor> Values(const odenet::OdeNet& net) {
    std::vector<at::Tensor> values;
    for (const at::Tensor& p : Trained(net)) values.push_back(p.detach().clone());
    return values;
  }
  static void SetValues(const odenet::OdeNet& net, const std::vector<at::Tensor>& values) {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> all = Trained(net);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].copy_(values[i]);
  }

  static std::vector<models::Batch> Batches(const odenet_training::Samples& samples, int epoch) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(samples.count));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(epoch)));
    std::vector<models::Batch> batches;
    for (std::int64_t i = 0; i + kBatch <= samples.count; i += kBatch) {
      batches.push_back(samples.make(absl::MakeConstSpan(order).subspan(i, kBatch)));
    }
    return batches;
  }

  mgrit::LayerParallel Solver(odenet::OdeNet& net, Coarse kind) const {
    const auto make = [&net, kind, this](std::int64_t i) {
      return std::make_shared<Layer>(net.blocks()[i], options_.step(), kind);
    };
    return {comm::Communicator::Self(), make, options_.layers, static_cast<double>(options_.layers),
            mgrit::MakeLayerParallelOptions(2, cfactor_, 2, 1)};
  }
  static at::Tensor Loss(odenet::OdeNet& net, const models::Batch& batch, mgrit::LayerParallel* solver) {
    if (solver == nullptr) return models::RunModel(net, batch).sum / static_cast<double>(kBatch);
    const models::BlockState begin = net.Prologue(batch, {});
    return net.Epilogue({solver->Forward(begin.hidden)}, batch).sum / static_cast<double>(kBatch);
  }
  // Of all parameters, as one vector.
  static at::Tensor Flat(const at::Tensor& loss, const odenet::OdeNet& net) {
    std::vector<at::Tensor> parts;
    for (const at::Tensor& g : torch::autograd::grad({loss}, Trained(net))) parts.push_back(g.flatten());
    return at::cat(parts);
  }
  static at::Tensor Gradient(odenet::OdeNet& net, const models::Batch& batch, mgrit::LayerParallel* solver) {
    return Flat(Loss(net, batch, solver), net);
  }
  static double Bias(const at::Tensor& gradient, const at::Tensor& exact) {
    return ((gradient - exact).norm() / exact.norm()).item<double>();
  }

  std::vector<double> Biases(Coarse kind, const models::Batch& batch, const at::Tensor& exact) {
    std::vector<double> biases;
    mgrit::LayerParallel solver = Solver(net_, kind);
    for (int k = 1; k <= absl::GetFlag(FLAGS_most_iterations); ++k) {
      solver.set_iterations(k, k);
      biases.push_back(Bias(Gradient(net_, batch, &solver), exact));
    }
    return biases;
  }

  // From the converged states that the batch had with the weights `before`.
  std::vector<double> WarmBiases(const std::vector<at::Tensor>& before, const models::Batch& batch,
                                 const at::Tensor& exact) {
    std::vector<double> biases;
    const std::vector<at::Tensor> now = Values(net_);
    mgrit::LayerParallel solver = Solver(net_, Coarse::kSame);
    const int intervals = static_cast<int>(options_.layers) / cfactor_;
    solver.set_iterations(intervals + 1, intervals + 1);
    SetValues(net_, before);
    solver.KeepPasses();
    Gradient(net_, batch, &solver);
    SetValues(net_, now);
    for (int k = 1; k <= absl::GetFlag(FLAGS_most_iterations); ++k) {
      solver.ContinueKeptPasses();
      const at::Tensor loss = Loss(net_, batch, &solver);
      solver.KeepPasses();
      biases.push_back(Bias(Flat(loss, net_), exact));
    }
    return biases;
  }

  void Train(odenet::OdeNet& net, torch::optim::Adam& adam, int epoch, mgrit::LayerParallel* solver) {
    for (const models::Batch& batch : Batches(problem_.train, epoch)) {
      adam.zero_grad();
      Loss(net, batch, solver).backward();
      adam.step();
    }
  }
  double Accuracy(odenet::OdeNet& net) const {
    const at::NoGradGuard no_grad;
    std::int64_t right = 0, all = 0;
    for (const models::Batch& batch : Batches(problem_.validation, 0)) {
      right += models::RunOutput(net, batch).argmax(1).eq(batch.targets).sum().item<std::int64_t>();
      all += kBatch;
    }
    return 100.0 * static_cast<double>(right) / static_cast<double>(all);
  }
  static void PrintRow(const char* name, const std::vector<double>& biases) {
    std::printf("  %-14s", name);
    for (const double bias : biases) std::printf(" %9.2e", bias);
    std::printf("\n");
    std::fflush(stdout);
  }

  odenet::OdeNetOptions options_;
  int cfactor_;
  const odenet_training::Problem& problem_;
  odenet::OdeNet begin_, net_;
};

absl::Status Run() {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  at::manual_seed(1);
  odenet_training::OdeNetSettings settings;
  settings.problem = absl::GetFlag(FLAGS_problem);
  settings.data = absl::GetFlag(FLAGS_data);
  settings.samples = 3000;
  settings.validation_samples = 1000;
  settings.max_samples = 1536;
  const bool images = settings.problem == "mnist";
  PLAIT_ASSIGN_OR_RETURN(const odenet_training::Problem problem,
                         odenet_training::OpenProblem(settings, comm::Communicator::Self()));
  std::printf("%s\n", problem.description.c_str());
  odenet::OdeNetOptions options = {.sample = problem.sample, .layers = 64, .classes = problem.classes};
  if (images) {
    options.form = odenet::Form::kConv2d;
    options.activation = odenet::Activation::kRelu;
    options.channels = 4;
    options.layers = 16;
    options.final_time = 2;
    options.hidden = 32;
  }
  Experiment experiment(options, images ? 4 : 8, problem);
  experiment.CompareGradients();
  experiment.CompareTraining();
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::benchmarks

int main(int argc, char** argv) {
  plait::base::ParseFlagsOrExit(argc, argv, plait::benchmarks::Usage());
  at::set_num_threads(1);
  const absl::Status status = plait::benchmarks::Run();
  if (!status.ok()) std::fprintf(stderr, "coarse_steps: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
