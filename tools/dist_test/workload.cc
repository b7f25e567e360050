#include "tools/dist_test/workload.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/rand.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>

#include "base/seed.h"
#include "parallel/replicas.h"

namespace plait::dist_test {
namespace {

// Matrix products in a narrower type, as autocast does them, while the scope lasts.
class Autocast {
 public:
  Autocast(at::DeviceType device, const std::string& dtype) : device_(device), on_(dtype != "float32") {
    if (!on_) return;
    at::autocast::set_autocast_dtype(device, dtype == "bfloat16" ? at::kBFloat16 : at::kHalf);
    at::autocast::set_autocast_enabled(device, true);
  }
  ~Autocast() {
    if (!on_) return;
    at::autocast::set_autocast_enabled(device_, false);
    at::autocast::clear_cache();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool on_;
};

mlp::Mlp NewNetwork(const Config& config, at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(base::DeriveSeed(config.seed, "parameters"));
  return mlp::Mlp({.widths = Widths(config)}, at::TensorOptions(device).dtype(at::kFloat));
}

}  // namespace

Workload::Workload(const Config& config, const comm::Communicator& dp, at::Device device,
                   base::Profile& profile)
    : config_(config),
      dp_(dp),
      device_(device),
      profile_(profile),
      mlp_(NewNetwork(config, device)),
      adam_(mlp_.parameters(), {.lr = config.lr}),
      samples_(
          at::make_generator<at::CPUGeneratorImpl>(base::DeriveSeed(config.seed, "samples", dp.rank()))) {
  parallel::BroadcastTensors(dp, mlp_.parameters(), 0);
  if (dp.size() > 1) {
    reducer_ = std::make_unique<parallel::GradientReducer>(
        dp, mlp_.parameters(), parallel::GradientReducerOptions{.bucket_bytes = config.bucket_bytes});
  }
}

double Workload::Now() const {
  if (!device_.is_cpu()) c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

at::Tensor Workload::Loss() {
  const Autocast autocast(device_.type(), config_.dtype);
  at::Tensor x = at::rand({config_.batch_size, config_.input_size}, samples_, at::kFloat).to(device_);
  const at::Tensor target =
      config_.output_size <= config_.input_size
          ? x.narrow(1, 0, config_.output_size)
          : x.repeat({1, config_.output_size / config_.input_size + 1}).narrow(1, 0, config_.output_size);
  return at::mse_loss(mlp_.Forward(x).to(at::kFloat), target, at::Reduction::Sum);
}

// Parameters whose gradients are there are new before the last gradients have come.
void Workload::Update() {
  if (reducer_ == nullptr) return adam_.Step();
  adam_.BeginStep();
  reducer_->Finish([this](absl::Span<const std::size_t> parameters) { adam_.Apply(parameters); });
}

StepTimes Workload::Step() {
  const base::Profile::Scope scope(profile_, "step");
  adam_.ClearGradients();
  StepTimes times;
  times.begin_seconds = Now();
  at::Tensor loss;
  {
    const base::Profile::Scope forward(profile_, "forward");
    loss = Loss();
    times.forward_end_seconds = Now();
  }
  {
    const base::Profile::Scope backward(profile_, "backward and all-reduce");
    loss.backward();
    times.backward_end_seconds = Now();
  }
  {
    const base::Profile::Scope optimizer(profile_, "optimizer and the last all-reduces");
    Update();
    times.end_seconds = Now();
  }
  times.loss = loss.item<double>();
  return times;
}

std::int64_t Workload::ParameterCount() const {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : mlp_.parameters()) count += parameter.numel();
  return count;
}

}  // namespace plait::dist_test
