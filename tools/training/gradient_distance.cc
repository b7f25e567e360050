#include "tools/training/gradient_distance.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "comm/buffer.h"
#include "tools/device/device.h"

namespace plait::training {
namespace {

std::vector<at::Tensor> CopyOfGradients(const parallel::DataParallel& engine) {
  std::vector<at::Tensor> copies;
  for (const parallel::Shard& shard : engine.shards()) {
    copies.push_back(shard.gradient.defined() ? shard.gradient.clone() : at::Tensor());
  }
  return copies;
}

// |gradient - other| over the mesh; leaves the gradients unchanged.
double Distance(parallel::DataParallel& engine, const std::vector<at::Tensor>& others) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> kept = CopyOfGradients(engine);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const at::Tensor& gradient = engine.shards()[i].gradient;
    if (gradient.defined() && others[i].defined()) gradient.sub_(others[i]);
  }
  const double difference = engine.GradientNorm();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].defined()) engine.shards()[i].gradient.copy_(kept[i]);
  }
  return difference;
}

}  // namespace

GradientComparison CompareGradients(ShardedModel& model, const comm::Communicator& world,
                                    const parallel::NextMicroBatch& next,
                                    const std::function<void()>& use_inexact,
                                    const std::function<void()>& use_exact) {
  std::vector<parallel::PipelineMicroBatch> micro_batches;
  const auto now = [&] { return device::SecondsWhenDone(model.device()); };
  double loading = 0;  // in the first passes alone
  const auto kept = [&](int k) {
    if (static_cast<std::size_t>(k) == micro_batches.size()) {
      const double begin = now();
      micro_batches.push_back(next(k));
      loading += now() - begin;
    }
    return micro_batches[static_cast<std::size_t>(k)];
  };
  // Seconds of the inexact and the exact passes, and 1 if a solve has diverged.
  double measured[3] = {};
  const auto diverged = [&] { return model.solver() == nullptr ? 0 : model.solver()->diverged_solves(); };
  const std::int64_t diverged_before = diverged();
  use_inexact();
  double begin = now();
  model.RunMicroBatches(kept, /*final=*/false);
  measured[0] = now() - begin - loading;
  parallel::DataParallel& engine = model.engine();
  engine.SumPartialGradients();
  const std::vector<at::Tensor> inexact = CopyOfGradients(engine);
  engine.AllGatherParameters();  // forgets gradients; parameters are what they were

  use_exact();
  GradientComparison comparison;
  begin = now();
  comparison.exact = model.RunMicroBatches(kept);
  measured[1] = now() - begin;
  measured[2] = diverged() > diverged_before ? 1 : 0;
  // Solves of other data may not have diverged, and Distance is collective.
  world.AllReduce(comm::BufferOf(absl::MakeSpan(measured)), comm::ReduceOp::kMax);
  comparison.seconds = measured[0];
  comparison.exact_seconds = measured[1];
  const double norm = engine.GradientNorm();
  // What overflows in the loss's gradient lets the adjoint's solve diverge, too.
  comparison.overflows = !std::isfinite(norm);
  const bool says_nothing = comparison.overflows || measured[2] > 0;
  comparison.distance =
      says_nothing ? std::numeric_limits<double>::quiet_NaN() : Distance(engine, inexact) / norm;
  return comparison;
}

}  // namespace plait::training
