#include "tools/dist_test/workload.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/rand.h>

#include "base/seed.h"
#include "base/status_macros.h"
#include "tools/device/device.h"

namespace plait::dist_test {
namespace {

// While it lives, matrix products are computed in `dtype`.
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

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> Workload::Create(const Config& config, const comm::DeviceMesh& mesh,
                                                           at::Device device, base::Profile& profile) {
  auto workload = std::unique_ptr<Workload>(new Workload(config, mesh, device, profile));
  PLAIT_RETURN_IF_ERROR(workload->CreateEngine(mesh));
  return workload;
}

// On the meta device: the engine gives parameters memory unit by unit.
Workload::Workload(const Config& config, const comm::DeviceMesh& mesh, at::Device device,
                   base::Profile& profile)
    : config_(config),
      ranks_(mesh.world().size()),
      device_(device),
      profile_(profile),
      mlp_({.widths = Widths(config)}, at::TensorOptions(at::kMeta).dtype(at::kFloat)),
      samples_(at::make_generator<at::CPUGeneratorImpl>(
          base::DeriveSeed(config.seed, "samples", mesh.world().rank()))) {}

absl::Status Workload::CreateEngine(const comm::DeviceMesh& mesh) {
  std::vector<models::ParameterUnit> units = mlp_.units();
  for (models::ParameterUnit& unit : units) {
    if (mesh.Has("dp")) unit.replicate_axis = "dp";
  }
  at::manual_seed(base::DeriveSeed(config_.seed, "parameters"));
  PLAIT_ASSIGN_OR_RETURN(
      engine_, parallel::DataParallel::Create(mesh, std::move(units),
                                              {.strategy = config_.strategy, .device = device_},
                                              [&](std::size_t unit) { mlp_.ResetParameters(unit); }));
  adam_ = std::make_unique<parallel::ShardedOptimizer>(
      *engine_, parallel::ShardedOptimizerOptions{.kind = parallel::OptimizerKind::kAdam, .lr = config_.lr});
  return absl::OkStatus();
}

double Workload::Now() const { return device::SecondsWhenDone(device_); }

at::Tensor Workload::Loss() {
  const Autocast autocast(device_.type(), config_.dtype);
  at::Tensor x = at::rand({config_.batch_size, config_.input_size}, samples_, at::kFloat).to(device_);
  const at::Tensor target =
      config_.output_size <= config_.input_size
          ? x.narrow(1, 0, config_.output_size)
          : x.repeat({1, config_.output_size / config_.input_size + 1}).narrow(1, 0, config_.output_size);
  const models::BlockRunner run = [this](std::size_t block, const models::BlockState& input,
                                         const models::BlockContext& context) {
    return engine_->Run(
        block, [&](const models::BlockState& in) { return mlp_.blocks()[block]->Forward(in, context); },
        input);
  };
  const at::Tensor y = models::RunOutput(mlp_, {.inputs = x, .targets = {}}, run);
  return at::mse_loss(y.to(at::kFloat), target, at::Reduction::Sum);
}

StepTimes Workload::Step() {
  const base::Profile::Scope scope(profile_, "step");
  StepTimes times;
  times.begin_seconds = Now();
  at::Tensor loss, part;
  {
    const base::Profile::Scope forward(profile_, "forward");
    part = engine_->Forward([&] {
      loss = Loss();
      return loss / ranks_;
    });
    times.forward_end_seconds = Now();
  }
  {
    const base::Profile::Scope backward(profile_, "backward and reductions");
    engine_->Backward(part);
    times.backward_end_seconds = Now();
  }
  {
    const base::Profile::Scope optimizer(profile_, "optimizer");
    adam_->Step();
    engine_->WaitForParameters();
    times.end_seconds = Now();
  }
  times.loss = loss.item<double>();
  return times;
}

void Workload::VisitParameters(const ParameterVisitor& visit) {
  engine_->VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters) visit(p.name, p.tensor);
  });
}

std::int64_t Workload::ParameterCount() const { return models::CountParameters(engine_->units()); }

}  // namespace plait::dist_test
