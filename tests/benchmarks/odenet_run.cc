#include "tests/benchmarks/odenet_run.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sin.h>
#include <torch/optim/adam.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/safetensors/writer.h"
#include "tools/odenet_training/problem.h"
#include "tools/odenet_training/settings.h"

namespace plait::benchmarks {
namespace {

namespace st = data::safetensors;

constexpr char kExample[] = "torchbraid";
constexpr std::uint64_t kSeed = 1337;

models::Batch ExampleBatch(std::int64_t images) {
  const at::Tensor n = at::arange(images * 784, at::kDouble).remainder(100003);
  return {(0.5 + 0.5 * at::sin(n * n * 0.37)).view({images, 1, 28, 28}).to(at::kFloat),
          at::remainder(at::arange(images, at::kLong) * 7, 10)};
}

OdeNetCase Example(const OdeNetChoice& choice) {
  const std::int64_t batch = choice.batch > 0 ? choice.batch : 50;
  return {.problem = kExample,
          .network = {.form = odenet::Form::kConv2d,
                      .sample = {28, 28},
                      .channels = choice.channels > 0 ? choice.channels : 3,
                      .layers = choice.layers > 0 ? choice.layers : 32,
                      .final_time = 1,
                      .activation = odenet::Activation::kRelu,
                      .hidden = 32,
                      .classes = 10},
          .batch = batch,
          .is_synthetic = true,
          .data = "synthetic images",
          .make_batch = [batch](std::int64_t) { return ExampleBatch(batch); }};
}

// train_odenet's, without flags.
absl::StatusOr<odenet_training::OdeNetSettings> SettingsOf(const OdeNetChoice& choice) {
  odenet_training::OdeNetSettings settings;
  training::SettingsTable table;
  settings.Bind(table);
  settings.problem = choice.problem;
  settings.data = choice.data;
  PLAIT_RETURN_IF_ERROR(settings.ChooseDefaults(table));
  if (choice.layers > 0) settings.layers = choice.layers;
  if (choice.channels > 0) settings.channels = choice.channels;
  if (choice.batch > 0) settings.batch_size = choice.batch;
  return settings;
}

}  // namespace

absl::StatusOr<OdeNetCase> OpenCase(const OdeNetChoice& choice, const comm::Communicator& world) {
  if (choice.problem == kExample) return Example(choice);
  PLAIT_ASSIGN_OR_RETURN(const odenet_training::OdeNetSettings settings, SettingsOf(choice));
  PLAIT_ASSIGN_OR_RETURN(const odenet_training::Problem problem,
                         odenet_training::OpenProblem(settings, world));
  const auto make_batch = [samples = problem.train, size = settings.batch_size](std::int64_t number) {
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < size; ++i) indices.push_back((number * size + i) % samples.count);
    return samples.make(indices);
  };
  return OdeNetCase{.problem = settings.problem,
                    .network = settings.Network(problem.sample, problem.classes, settings.layers),
                    .batch = settings.batch_size,
                    .is_synthetic = absl::StrContains(problem.description, "synthetic"),
                    .data = problem.description,
                    .learning_rate = settings.lr,
                    .make_batch = make_batch};
}

namespace {

odenet::OdeNet SeededNet(const odenet::OdeNetOptions& options) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(kSeed);
  return odenet::OdeNet(options, at::kFloat);
}

}  // namespace

OdeNetRun::OdeNetRun(const OdeNetCase& example, const mgrit::LayerParallelOptions& solver,
                     const comm::Communicator& communicator)
    : TimedNetwork(communicator),
      case_(example),
      repeats_(example.problem == kExample),
      batch_(example.make_batch(0)),
      net_(SeededNet(example.network)),
      solver_(
          communicator, [this](std::int64_t layer) { return net_.blocks()[layer]; }, example.network.layers,
          static_cast<double>(example.network.layers), solver),
      own_(solver_.Parameters()) {
  if (repeats_) RepeatImages();
  const std::vector<models::ParameterUnit> units = net_.units();  // by value: the loop must not outlive it
  for (const models::ParameterSpec& p : units[0].parameters) {
    if (p.used_by == models::UsedBy::kEpilogue) closing_.push_back(p.tensor);
    if (p.used_by == models::UsedBy::kPrologue && !repeats_) opening_.push_back(p.tensor);
  }
}

void OdeNetRun::RepeatImages() {
  const at::NoGradGuard no_grad;
  const std::vector<models::ParameterUnit> units = net_.units();
  for (const models::ParameterSpec& p : units[0].parameters) {
    if (p.used_by != models::UsedBy::kPrologue) continue;
    p.tensor.zero_();
    if (p.tensor.dim() == 4) p.tensor.select(2, 1).select(2, 1).fill_(1);
    at::Tensor fixed = p.tensor;
    fixed.set_requires_grad(false);
  }
}

absl::Status OdeNetRun::WriteInitial(const std::string& path) const {
  std::vector<st::TensorView> views;
  for (const models::ParameterUnit& unit : net_.units()) {
    for (const models::ParameterSpec& p : unit.parameters)
      views.push_back({p.name, {st::DType::kF32, p.tensor.sizes().vec()}, p.tensor.const_data_ptr()});
  }
  const bool writes = communicator().rank() == 0;
  return communicator().Agree(writes ? st::WriteFile(path, views, {{"format", "pt"}}) : absl::OkStatus());
}

std::string OdeNetRun::Description() const {
  return absl::StrCat("problem=", case_.problem, " batch=", case_.batch,
                      " data=", case_.is_synthetic ? "synthetic" : "real");
}

double OdeNetRun::StateBytes() const {
  const odenet::OdeNetOptions& o = case_.network;
  const bool dense = o.form == odenet::Form::kDense;
  const std::int64_t points =
      dense ? 1 : std::accumulate(o.sample.begin(), o.sample.end(), std::int64_t{1}, std::multiplies<>());
  return 4.0 * static_cast<double>(case_.batch * o.channels * points);
}

void OdeNetRun::ClearGradients() {
  for (std::vector<at::Tensor>* const group : {&own_, &opening_, &closing_}) {
    for (at::Tensor& parameter : *group) parameter.mutable_grad().reset();
  }
}

at::Tensor OdeNetRun::Loss(const at::Tensor& propagated) {
  const models::LossSum loss = net_.Epilogue({propagated}, batch_);
  return loss.sum.div(loss.count);
}

at::Tensor OdeNetRun::SerialLoss() {
  const models::LossSum loss = models::RunModel(net_, batch_);
  return loss.sum.div(loss.count);
}

void OdeNetRun::Descend(double learning_rate) {
  const at::NoGradGuard no_grad;
  for (const std::vector<at::Tensor>* const group : {&own_, &opening_, &closing_}) {
    for (const at::Tensor& parameter : *group) parameter.add_(parameter.grad(), -learning_rate);
  }
}

void OdeNetRun::TrainSerially(int steps) {
  std::vector<at::Tensor> trained;
  for (const models::ParameterUnit& unit : net_.units()) {
    for (const models::ParameterSpec& p : unit.parameters) {
      if (p.tensor.requires_grad()) trained.push_back(p.tensor);
    }
  }
  torch::optim::Adam adam(trained, torch::optim::AdamOptions(case_.learning_rate));
  for (int step = 0; step < steps; ++step) {
    batch_ = case_.make_batch(step);
    RunSerialBatch();
    adam.step();
  }
}

std::vector<at::Tensor> OdeNetRun::Gradients() const {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : own_) gradients.push_back(parameter.grad().to(at::kDouble));
  for (std::size_t i = 0; communicator().rank() == 0 && i < closing_.size(); ++i)
    gradients.push_back(closing_[i].grad().to(at::kDouble));
  return gradients;
}

std::vector<at::Tensor> OdeNetRun::ExactGradients() {
  solver_.set_propagation(mgrit::Propagation::kSerial);
  RunBatch();
  solver_.set_propagation(mgrit::Propagation::kParallel);
  return Gradients();
}

double OdeNetRun::Bias(const std::vector<at::Tensor>& exact) {
  RunBatch();
  const std::vector<at::Tensor> found = Gradients();
  double squares[] = {0, 0};
  for (std::size_t i = 0; i < exact.size(); ++i) {
    squares[0] += (found[i] - exact[i]).square().sum().item<double>();
    squares[1] += exact[i].square().sum().item<double>();
  }
  communicator().AllReduce(comm::BufferOf(absl::MakeSpan(squares)));
  return std::sqrt(squares[0] / squares[1]);
}

}  // namespace plait::benchmarks
