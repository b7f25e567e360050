#include "tests/parity/trajectory.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/testing/nan_is_infinite.h"
#include "comm/buffer.h"
#include "comm/device_mesh.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "tests/parity/serial_adamw.h"

namespace plait::parity {
namespace {

std::vector<std::int64_t> Range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> range(static_cast<std::size_t>(end - begin));
  std::iota(range.begin(), range.end(), begin);
  return range;
}

// The part of 0..count-1 that is the i-th of n, to one as long as the others.
std::pair<std::int64_t, std::int64_t> PartOf(std::int64_t count, std::int64_t i, std::int64_t n) {
  return {count * i / n, count * (i + 1) / n};
}

const parallel::ShardedOptimizerOptions kAdamW = {
    .lr = kLr, .beta1 = kBeta1, .beta2 = kBeta2, .epsilon = kEpsilon, .weight_decay = kDecay};

std::vector<at::Tensor> Copies(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& p : parameters) copies.push_back(p.detach().clone());
  return copies;
}

parallel::StateStoreOptions Place(bool in_file) {
  return {.target = in_file ? parallel::OffloadTarget::kFile : parallel::OffloadTarget::kMemory,
          .folder = std::getenv("TEST_TMPDIR") != nullptr ? std::getenv("TEST_TMPDIR") : "/tmp"};
}

// One model with its engine and optimizer.
class ShardedRun {
 public:
  ShardedRun(ModelKind kind, at::ScalarType type, const Setting& setting, const comm::Communicator& world)
      : setting_(setting),
        world_(world),
        model_(MakeParityModel(kind, type)),
        faults_(setting.fault, Steps(kMostSteps) / 2, world) {
    const auto mesh =
        comm::DeviceMesh::Create(world, {{"dp_replicate", setting.replicas}, {"dp_shard", setting.shards}});
    PLAIT_CHECK(mesh.ok()) << mesh.status();
    // The embedding of the GPT is a part of its own.
    const parallel::DataParallelOptions options = {
        .strategy = setting.strategy,
        .compute_type = setting.compute_type,
        .part_bytes = 512,
        .masters_offload = Place(setting.offloads_masters || setting.offloads_parameters),
        .offloads_parameters = setting.offloads_parameters};
    dp_ = *parallel::DataParallel::Create(*mesh, faults_.UnitsOf(model_.units), options);
    model_.set_runner([this](std::size_t block, const models::BlockForward& forward,
                             const models::BlockState& x) {
      if (!setting_.checkpoints_activations) return dp_->Run(block, forward, x);
      const auto repeatable = [forward](const models::BlockState& in, bool) { return forward(in); };
      return dp_->Run(
          block,
          [&](const models::BlockState& in) { return parallel::CheckpointActivations(repeatable, in); }, x);
    });
    optimizer_ = *parallel::ShardedOptimizer::Create(*dp_, kAdamW, Place(setting.offloads));
  }

  // The loss of the whole batch.
  double Step(int step) {
    const auto [begin, end] = PartOf(kParitySamples, world_.rank(), world_.size());
    double loss = 0;
    for (int pass = 0; pass < setting_.passes; ++pass) {
      const auto [first, last] = PartOf(end - begin, pass, setting_.passes);
      loss += Pass(Range(begin + first, begin + last), step, pass);
    }
    world_.AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));
    Update(step);
    return loss;
  }

  std::vector<at::Tensor> Parameters() {
    std::vector<at::Tensor> all;
    dp_->VisitUnsharded([&](const models::ParameterUnit& unit) {
      for (const models::ParameterSpec& p : unit.parameters) all.push_back(p.tensor.detach().clone());
    });
    return all;
  }

 private:
  double Pass(const std::vector<std::int64_t>& samples, int step, int pass) {
    const double normalizer =
        faults_.NormalizerOf(samples.size(), setting_.passes, static_cast<double>(kParitySamples));
    const at::Tensor part = dp_->Forward([&] { return model_.loss(samples, step) / normalizer; });
    dp_->Backward(part,
                  {.last = pass + 1 == setting_.passes, .reduce_every_micro_batch = setting_.reduce_each});
    return part.item<double>();
  }

  void Update(int step) {
    if (setting_.fault != Fault::kNone) faults_.SpoilGradients(*dp_, step);
    faults_.NoteMasters(*dp_, step);
    const auto result = optimizer_->Step({.clip_norm = faults_.ClipNormOf(*dp_, kClip)});
    PLAIT_CHECK(result.status.ok()) << result.status;
    PLAIT_CHECK(setting_.fault != Fault::kNone || result.gradient_norm > kClip)
        << "clipping is not tested: norm " << result.gradient_norm;
    faults_.SpoilMasters(*dp_, step);
  }

  Setting setting_;
  comm::Communicator world_;
  ParityModel model_;
  FaultInjector faults_;
  std::unique_ptr<parallel::DataParallel> dp_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
};

}  // namespace

std::string TextOf(const Setting& s) {
  return absl::StrCat(
      parallel::Name(s.strategy), " ", s.replicas, "x", s.shards,
      s.passes > 1 ? absl::StrCat(", ", s.passes, " micro-batches") : "",
      s.reduce_each ? " reduced each" : "", s.checkpoints_activations ? ", activations checkpointed" : "",
      s.offloads ? ", moments in a file" : "", s.offloads_masters ? ", masters in a file" : "",
      s.offloads_parameters ? ", parameters in a file" : "",
      s.fault != Fault::kNone ? absl::StrCat(", ", NameOf(s.fault)) : "");
}

Trajectory SerialTrajectory(ModelKind kind, at::ScalarType type, double perturbation) {
  const ParityModel model = MakeParityModel(kind, type);
  const std::vector<at::Tensor> parameters = model.parameters();
  if (perturbation > 0) Perturb(parameters, perturbation);
  const NamedTensors named = NamedParameters(model.units);
  SerialAdamW optimizer(named, kAdamW);
  Trajectory trajectory;
  for (int step = 0; TrainsSerially() && step < Steps(kMostSteps); ++step) {
    optimizer.ZeroGradients();
    const at::Tensor loss = model.loss(Range(0, kParitySamples), step) / static_cast<double>(kParitySamples);
    loss.backward();
    optimizer.Step(kClip);
    trajectory.losses.push_back(loss.item<double>());
  }
  TakeFromFirstRank(trajectory.losses);
  TakeFromFirstRank(named);
  trajectory.parameters = Copies(parameters);
  return trajectory;
}

Trajectory ParallelTrajectory(ModelKind kind, at::ScalarType type, const Setting& setting,
                              const comm::Communicator& world) {
  ShardedRun run(kind, type, setting, world);
  Trajectory trajectory;
  for (int step = 0; step < Steps(kMostSteps); ++step) trajectory.losses.push_back(run.Step(step));
  trajectory.parameters = run.Parameters();
  return trajectory;
}

double LargestDifference(const Trajectory& a, const Trajectory& b) {
  PLAIT_CHECK(a.losses.size() == b.losses.size() && a.parameters.size() == b.parameters.size())
      << "these are not runs of one model";
  double largest = 0;
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    largest = std::max(largest, base::NanIsInfinite(std::abs(a.losses[i] / b.losses[i] - 1)));
  }
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const double difference = (a.parameters[i] - b.parameters[i]).abs().max().item<double>();
    largest = std::max(largest, base::NanIsInfinite(difference / b.parameters[i].abs().max().item<double>()));
  }
  return largest;
}

}  // namespace plait::parity
