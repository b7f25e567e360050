// Layer parallelism inside a mesh: with data parallelism along another axis, against one rank.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/tensor_collectives.h"
#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kSteps = 23;
constexpr std::int64_t kBatch = 6;
constexpr double kFinalTime = 1.5;
constexpr double kTolerance = 1e-12;  // as in layer_parallel_test

// Each data-parallel rank takes its rows of the batch; gradients are summed along dp.
class MeshTest : public ::testing::Test {
 protected:
  const comm::DeviceMesh mesh_ = *comm::DeviceMesh::Create(
      comm::testing::World(), {{"dp", comm::testing::World().size() > 1 ? 2 : 1}, {"lp", -1}});
  const comm::Communicator dp_ = mesh_.axis("dp");
  const at::Tensor inputs_ = Numbers({kBatch, kWidth}, 5);
  const at::Tensor weights_ = Numbers({kBatch, kWidth}, 77);

  at::Tensor OwnRows(const at::Tensor& rows) const {
    const std::int64_t count = kBatch / dp_.size();
    return rows.narrow(0, dp_.rank() * count, count);
  }
  void ExpectGradientsOfOneRank(LayerParallel& net, const BlockOf& block_of,
                                const std::vector<at::Tensor>& parameters) {
    for (const at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
    (net.Forward(OwnRows(inputs_)) * OwnRows(weights_)).sum().backward();
    std::vector<at::Tensor> actual;
    for (const at::Tensor& parameter : parameters) {
      actual.push_back(parameter.grad().clone());
      comm::AllReduce(dp_, actual.back());
    }
    const at::Tensor loss = (SerialForward(block_of, kSteps, kFinalTime, inputs_) * weights_).sum();
    const std::vector<at::Tensor> expected = Gradients(loss, parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_LT(RelativeError(actual[i], expected[i]), kTolerance) << "parameter " << i;
    }
  }
};

TEST_F(MeshTest, ASharedBlockUnderDataParallelism) {
  const auto block = std::make_shared<Residual>(1);
  LayerParallel net(mesh_.axis("lp"), block, kSteps, kFinalTime, MakeLayerParallelOptions(3, 3, 30, 30));
  ExpectGradientsOfOneRank(net, [&](std::int64_t) { return block; }, {block->weight, block->bias});
}

TEST_F(MeshTest, BlocksOfTheirOwnUnderDataParallelism) {
  std::vector<std::shared_ptr<Residual>> blocks;
  for (std::int64_t i = 0; i < kSteps; ++i) blocks.push_back(std::make_shared<Residual>(10 + i));
  const auto block_of = [&](std::int64_t step) { return blocks[step]; };
  LayerParallel net(mesh_.axis("lp"), block_of, kSteps, kFinalTime, MakeLayerParallelOptions(3, 3, 30, 30));
  ExpectGradientsOfOneRank(net, block_of, net.Parameters());
}

}  // namespace
}  // namespace plait::mgrit
