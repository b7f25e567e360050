// Parameters with flat buffers of their own adopt the memory of their gradients. In float64, against the same sums on
// plain tensors.
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

using comm::testing::World;

// A multiple of the alignment on up to eight ranks: there is no padding.
constexpr std::int64_t kIn = 16, kOut = 32, kRows = 3;
constexpr int kMicroBatches = 2;

// Numbers are below one: |y| is at most kIn + 1 after as many roundings, and a gradient is a sum of rows x
// micro-batches x ranks terms 2 y x. Both sides round so: twice gamma_n (Higham 2002, section 3.1) of the sum.
double Bound(int ranks) {
  const double terms = static_cast<double>(kRows) * kMicroBatches * ranks;
  const double roundings = terms + kIn + 4;
  return 2 * roundings * std::numeric_limits<double>::epsilon() / 2 * terms * 2 * (kIn + 1);
}

class AdoptedGradientTest : public ::testing::TestWithParam<Strategy> {
 protected:
  AdoptedGradientTest() {
    const char* axis = GetParam() == Strategy::kDdp ? "dp_replicate" : "dp_shard";
    const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(World(), {{axis, World().size()}});
    dp_ = *DataParallel::Create(
        mesh, {models::MakeUnit("root", {{"product", product_}, {"added", added_}, {"bias", bias_}})},
        {.strategy = GetParam(), .part_bytes = kIn * kOut * 8});
  }
  ~AdoptedGradientTest() override { dp_->WaitForParameters(); }

  static at::Tensor Parameter(std::vector<std::int64_t> shape, int seed) {
    return TestNumbers(std::move(shape), seed).requires_grad_(true);
  }
  static at::Tensor Input(int rank, int micro_batch) {
    return TestNumbers({kRows, kIn}, 10 + 10 * micro_batch + rank);
  }
  static at::Tensor Loss(const at::Tensor& product, const at::Tensor& bias, const at::Tensor& x) {
    const at::Tensor y = at::mm(x, product) + bias;
    return (y * y).sum();
  }

  // This rank's pass; `given` is the gradient of `added`.
  void Pass(int micro_batch, const at::Tensor& given) {
    const at::Tensor loss =
        dp_->Forward([&] { return Loss(product_, bias_, Input(World().rank(), micro_batch)); });
    dp_->Backward(
        [&] {
          loss.backward();
          dp_->AddGradient(added_, given);
        },
        {.last = micro_batch + 1 == kMicroBatches});
  }

  // Every shard beside the same elements of `sums`.
  void Expect(const std::map<std::string, at::Tensor>& sums) {
    for (const Shard& shard : dp_->shards()) {
      for (const FlatSlice& slice : shard.layout->Slices(shard.rank)) {
        const std::string& name = shard.parameters[slice.parameter]->name;
        const at::Tensor expected = sums.at(name).flatten().narrow(0, slice.begin, slice.end - slice.begin);
        const at::Tensor mine = shard.gradient.narrow(0, slice.shard_offset, slice.end - slice.begin);
        EXPECT_LE((mine - expected).abs().max().item<double>(), Bound(World().size())) << name;
      }
    }
  }

  at::Tensor product_ = Parameter({kIn, kOut}, 1), added_ = Parameter({kIn, kOut}, 2),
             bias_ = Parameter({kOut}, 3);
  std::unique_ptr<DataParallel> dp_;
};

TEST_P(AdoptedGradientTest, SumsOverMicroBatchesRanksAndSteps) {
  ShardedOptimizer optimizer(*dp_, {.kind = OptimizerKind::kSgd, .lr = 0});
  const at::Tensor product = Parameter({kIn, kOut}, 1), bias = Parameter({kOut}, 3);
  for (int step = 0; step < 3; ++step) {
    at::Tensor added = at::zeros({kIn, kOut}, at::kDouble);
    for (const at::Tensor& tensor : {product, bias}) tensor.mutable_grad().reset();
    for (int micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) {
      for (int rank = 0; rank < World().size(); ++rank) {
        Loss(product, bias, Input(rank, micro_batch)).backward();
        added += TestNumbers({kIn, kOut}, 100 + 10 * step + micro_batch + 1000 * rank);
      }
      const int rank = World().rank();
      Pass(micro_batch, TestNumbers({kIn, kOut}, 100 + 10 * step + micro_batch + 1000 * rank));
    }
    Expect({{"product", product.grad()}, {"added", added}, {"bias", bias.grad()}});
    optimizer.Step();
  }
}

TEST_P(AdoptedGradientTest, MemoryThatTheCallerKeepsIsNotWrittenInto) {
  const at::Tensor given = TestNumbers({kIn, kOut}, 100 + World().rank());
  const at::Tensor before = given.clone();
  for (int micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) Pass(micro_batch, given);
  EXPECT_TRUE(given.equal(before));
}

INSTANTIATE_TEST_SUITE_P(Strategies, AdoptedGradientTest,
                         ::testing::Values(Strategy::kDdp, Strategy::kZero1, Strategy::kZero2,
                                           Strategy::kFsdp),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace plait::parallel
