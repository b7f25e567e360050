#include "tools/cnn_training/evaluation.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nll_loss.h>

#include <optional>
#include <vector>

#include "data/sampler.h"

namespace plait::cnn_training {

TestResult Test(ShardedCnn& net, const Images& images, std::int64_t batch_size, at::ScalarType type,
                const comm::Communicator& world) {
  const at::NoGradGuard no_grad;
  const data::ImageSplit& split = images.set.test;
  data::Sampler sampler(
      {.samples = split.samples(), .batch_size = batch_size * world.size(), .shuffle = false});
  double sums[2] = {0, 0};  // loss, correct
  net.model().SetTraining(false);
  while (const std::optional<std::vector<std::int64_t>> indices = sampler.Next()) {
    const Batch batch =
        MakeBatch(split, images.scale, data::ShareOf(*indices, world.rank(), world.size()), type);
    const at::Tensor scores = net.engine().Forward([&] { return net.Forward(batch.x); });
    if (batch.y.numel() == 0) continue;
    sums[0] += at::nll_loss(scores.to(at::kDouble), batch.y, {}, at::Reduction::Sum).item<double>();
    sums[1] += scores.argmax(1).eq(batch.y).sum().item<double>();
  }
  net.model().SetTraining(true);
  world.AllReduce(comm::BufferOf(absl::MakeSpan(sums)));
  return {.loss = sums[0] / static_cast<double>(split.samples()),
          .correct = static_cast<std::int64_t>(sums[1]),
          .samples = split.samples()};
}

}  // namespace plait::cnn_training
