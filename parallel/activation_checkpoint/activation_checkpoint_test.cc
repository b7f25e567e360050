// Checkpointed blocks against the plain pass of the same blocks, bitwise.
#include "parallel/activation_checkpoint/activation_checkpoint.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/utils.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace plait::parallel {
namespace {

constexpr std::int64_t kBatch = 5, kWidth = 8;
constexpr int kBlocks = 3;

using StorageWatch = c10::weak_intrusive_ptr<c10::StorageImpl>;

StorageWatch Watch(const at::Tensor& tensor) {
  return StorageWatch(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(tensor.storage().unsafeGetStorageImpl()));
}

// Several blocks of linear, gelu and dropout.
struct Network {
  explicit Network(bool checkpointed, double dropout = 0.4) : checkpointed(checkpointed), dropout(dropout) {
    torch::manual_seed(7);
    for (int block = 0; block < kBlocks; ++block) {
      parameters.push_back(at::randn({kWidth, kWidth}, at::kDouble).requires_grad_(true));
      parameters.push_back(at::randn({kWidth}, at::kDouble).requires_grad_(true));
    }
  }

  at::Tensor Block(int block, const at::Tensor& x) {
    ++calls;
    const at::Tensor linear = at::linear(x, parameters[2 * block], parameters[2 * block + 1]);
    watched.push_back(Watch(linear));  // gelu saves it for backward
    return at::dropout(at::gelu(linear), dropout, /*train=*/true);
  }

  at::Tensor Forward(at::Tensor x) {
    for (int block = 0; block < kBlocks; ++block) {
      const auto forward = [this, block](const at::Tensor& input) { return Block(block, input); };
      x = checkpointed ? CheckpointActivations(forward, x) : forward(x);
    }
    return x;
  }

  bool checkpointed;
  double dropout;
  std::vector<at::Tensor> parameters;
  std::vector<StorageWatch> watched;
  int calls = 0;
};

at::Tensor Input() {
  torch::manual_seed(99);
  return at::randn({kBatch, kWidth}, at::kDouble);
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) { return a.defined() && b.defined() && a.equal(b); }

struct Pass {
  at::Tensor output, input_gradient;
  std::vector<at::Tensor> gradients;
  at::Tensor next_draw;  // of the generator, behind backward
};

Pass RunPass(Network& network, bool input_requires_gradient) {
  const at::Tensor input = Input().requires_grad_(input_requires_gradient);
  Pass pass;
  torch::manual_seed(1234);
  pass.output = network.Forward(input);
  (pass.output * pass.output).sum().backward();
  pass.input_gradient = input.grad();
  for (const at::Tensor& parameter : network.parameters) pass.gradients.push_back(parameter.grad());
  pass.next_draw = at::rand({3}, at::kDouble);
  return pass;
}

void ExpectSame(const Pass& a, const Pass& b) {
  EXPECT_TRUE(SameBits(a.output, b.output));
  EXPECT_TRUE(SameBits(a.next_draw, b.next_draw));
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    EXPECT_TRUE(SameBits(a.gradients[i], b.gradients[i])) << "parameter " << i;
  }
}

TEST(CheckpointActivations, HasTheBitsOfThePlainPass) {
  Network plain(false), checkpointed(true);
  const Pass expected = RunPass(plain, true), pass = RunPass(checkpointed, true);
  ExpectSame(expected, pass);
  EXPECT_TRUE(SameBits(expected.input_gradient, pass.input_gradient));
  EXPECT_GT(expected.output.eq(0).sum().item<int>(), 0) << "no dropout: the generator is not tested";
  EXPECT_EQ(checkpointed.calls, 2 * kBlocks);
}

TEST(CheckpointActivations, ParametersOfTheFirstBlockGetTheirsWithoutAGradientOfTheInput) {
  Network plain(false), checkpointed(true);
  const Pass expected = RunPass(plain, false), pass = RunPass(checkpointed, false);
  ExpectSame(expected, pass);
  EXPECT_FALSE(pass.input_gradient.defined());
}

TEST(CheckpointActivations, GradientsAccumulate) {
  Network plain(false), checkpointed(true);
  RunPass(plain, true);
  RunPass(checkpointed, true);
  ExpectSame(RunPass(plain, true), RunPass(checkpointed, true));
}

TEST(CheckpointActivations, ActivationsAreGoneBetweenForwardAndBackward) {
  for (const bool with_checkpoints : {false, true}) {
    Network network(with_checkpoints);
    const at::Tensor output = network.Forward(Input());
    ASSERT_EQ(network.watched.size(), std::size_t{kBlocks});
    for (const StorageWatch& activation : network.watched) {
      EXPECT_EQ(activation.expired(), with_checkpoints);
    }
    output.sum().backward();
    ASSERT_EQ(network.watched.size(), std::size_t{kBlocks} * (with_checkpoints ? 2 : 1));
  }
}

// Otherwise all activations of a block would be in memory until it returns.
TEST(CheckpointActivations, RecordsTheSecondTimeAlone) {
  std::vector<bool> recorded;
  const at::Tensor weight = at::randn({kWidth}, at::kDouble).requires_grad_(true);
  const at::Tensor output = CheckpointActivations(
      [&](const at::Tensor& x) {
        recorded.push_back((x * weight).requires_grad());
        return x * weight;
      },
      Input());
  output.sum().backward();
  EXPECT_EQ(recorded, (std::vector<bool>{false, true}));
}

TEST(CheckpointActivations, InputsAreGoneAfterBackward) {
  Network network(true);
  at::Tensor input = Input() + 1;
  const StorageWatch watch = Watch(input);
  const at::Tensor output = network.Forward(input);
  input.reset();
  EXPECT_FALSE(watch.expired());
  output.sum().backward();
  EXPECT_TRUE(watch.expired());
}

TEST(CheckpointActivations, WithoutAutogradItIsTheBlock) {
  Network network(true);
  const at::NoGradGuard off;
  const at::Tensor output = network.Forward(Input());
  EXPECT_FALSE(output.requires_grad());
  EXPECT_EQ(network.calls, kBlocks);
}

TEST(CheckpointActivations, BlocksThatGiveTheirInputOrAViewOfIt) {
  const at::Tensor weight = at::randn({kWidth}, at::kDouble).requires_grad_(true);
  const at::Tensor input = Input().requires_grad_(true);
  const at::Tensor same = CheckpointActivations([](const at::Tensor& x) { return x; }, input * weight);
  const at::Tensor turned = CheckpointActivations([](const at::Tensor& x) { return x.t(); }, same);
  const at::Tensor factors = at::randn({kWidth, kBatch}, at::kDouble);
  (turned * factors).sum().backward();
  EXPECT_TRUE(SameBits(input.grad(), factors.t() * weight));
}

TEST(CheckpointActivations, AnInputThatWasChangedIsFoundOut) {
  Network network(true);
  const at::Tensor input = Input();
  const at::Tensor output = network.Forward(input);
  input.add_(1);
  EXPECT_THROW(output.sum().backward(), c10::Error);
}

// The repeated pass is not part of a graph: a second derivative would lack all terms.
TEST(CheckpointActivations, ItsGradientIsNotDifferentiatedAgain) {
  Network network(true);
  const at::Tensor input = Input().requires_grad_(true), output = network.Forward(input);
  EXPECT_THROW(torch::autograd::grad({output.sum()}, {input}, {}, {}, /*create_graph=*/true), c10::Error);
}

class CountingHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit CountingHook(int& calls) : calls_(calls) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    ++calls_;
    EXPECT_TRUE(parameter.grad().defined());
  }

 private:
  int& calls_;
};

TEST(CheckpointActivations, HooksOfParametersAreCalledOnce) {
  Network network(true);
  int calls = 0;
  for (const at::Tensor& parameter : network.parameters) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<CountingHook>(calls));
  }
  network.Forward(Input()).sum().backward();
  EXPECT_EQ(calls, 2 * kBlocks);
}

// As with a sharding engine: the memory of parameters is freed after forward and restored before backward.
TEST(CheckpointActivations, MemoryOfParametersMayComeAndGo) {
  Network plain(false), checkpointed(true);
  const Pass expected = RunPass(plain, false);
  std::vector<at::Tensor> kept;
  for (const at::Tensor& parameter : checkpointed.parameters) kept.push_back(parameter.detach().clone());
  torch::manual_seed(99);
  const at::Tensor input = Input();
  torch::manual_seed(1234);
  const at::Tensor output = checkpointed.Forward(input);
  for (const at::Tensor& parameter : checkpointed.parameters) {
    parameter.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
        c10::GetAllocator(c10::kCPU)->allocate(0));
  }
  const at::Tensor loss = (output * output).sum();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    c10::StorageImpl* storage = checkpointed.parameters[i].storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(c10::GetAllocator(c10::kCPU)->allocate(kept[i].nbytes()));
    const at::NoGradGuard unrecorded;
    checkpointed.parameters[i].detach().copy_(kept[i]);
  }
  loss.backward();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_TRUE(SameBits(checkpointed.parameters[i].grad(), expected.gradients[i])) << i;
  }
}

TEST(CheckpointActivations, CheckpointsWithinCheckpoints) {
  Network plain(false), checkpointed(true);
  const Pass expected = RunPass(plain, true);
  const at::Tensor input = Input().requires_grad_(true);
  torch::manual_seed(1234);
  const at::Tensor output =
      CheckpointActivations([&](const at::Tensor& x) { return checkpointed.Forward(x); }, input);
  (output * output).sum().backward();
  EXPECT_TRUE(SameBits(output, expected.output));
  EXPECT_TRUE(SameBits(input.grad(), expected.input_gradient));
}

const std::vector<std::string>& Names() {
  static const auto& names = *new std::vector<std::string>{"h.0", "h.1", "h.2", "h.10", "head"};
  return names;
}

std::vector<bool> Picked(const std::string& text) {
  const absl::StatusOr<CheckpointPolicy> policy = CheckpointPolicy::Parse(text, Names());
  if (!policy.ok()) return {};
  std::vector<bool> picked;
  for (std::size_t block = 0; block < Names().size(); ++block) picked.push_back(policy->Picks(block));
  EXPECT_FALSE(policy->Picks(Names().size()));
  EXPECT_EQ(policy->count(), static_cast<std::size_t>(std::count(picked.begin(), picked.end(), true)));
  return picked;
}

TEST(CheckpointPolicy, PicksBlocks) {
  using Bits = std::vector<bool>;
  EXPECT_EQ(Picked("none"), (Bits{0, 0, 0, 0, 0}));
  EXPECT_EQ(Picked("full"), (Bits{1, 1, 1, 1, 1}));
  EXPECT_EQ(Picked("every-1"), (Bits{1, 1, 1, 1, 1}));
  EXPECT_EQ(Picked("every-2"), (Bits{1, 0, 1, 0, 1}));
  EXPECT_EQ(Picked("every-9"), (Bits{1, 0, 0, 0, 0}));
  EXPECT_EQ(Picked("h.1"), (Bits{0, 1, 0, 0, 0}));
  EXPECT_EQ(Picked("h.1*"), (Bits{0, 1, 0, 1, 0}));
  EXPECT_EQ(Picked("h.*"), (Bits{1, 1, 1, 1, 0}));
  EXPECT_EQ(Picked("*ea*,h.0"), (Bits{1, 0, 0, 0, 1}));
}

TEST(CheckpointPolicy, RefusesWhatItCannotRead) {
  for (const char* text : {"every-0", "every-x", "h.3", "", "h.0,tail", "*.*.*", "e*d*e"}) {
    EXPECT_EQ(CheckpointPolicy::Parse(text, Names()).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

// A block of the network as a models::Block that records its calls.
struct NetworkBlock final : models::Block {
  NetworkBlock(Network* n, int b) : network(n), block(b) {}
  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override {
    finals.push_back(context.final);
    const at::Tensor auxiliary = (input.hidden * input.hidden).sum();
    return {network->Block(block, input.hidden),
            input.auxiliary_loss.defined() ? input.auxiliary_loss + auxiliary : auxiliary};
  }
  std::vector<at::Tensor> Parameters() const override { return {}; }
  Network* network;
  int block;
  std::vector<bool> finals;
};

// Hidden states and auxiliary losses, both with gradients.
std::vector<at::Tensor> GradientsThroughBlocks(const CheckpointPolicy& policy, Network& network,
                                               std::vector<std::shared_ptr<NetworkBlock>>& blocks) {
  at::Tensor input = Input().requires_grad_(true);
  models::BlockState state = {input};
  for (int block = 0; block < kBlocks; ++block) {
    blocks.push_back(std::make_shared<NetworkBlock>(&network, block));
    state = policy.Forward(block, blocks.back(), state, {});
  }
  (state.hidden.sum() + 0.25 * state.auxiliary_loss).backward();
  std::vector<at::Tensor> gradients = {input.grad()};
  for (const at::Tensor& parameter : network.parameters) gradients.push_back(parameter.grad().clone());
  return gradients;
}

TEST(CheckpointPolicy, PickedBlocksAreRepeatedAndOnlyTheFirstCallIsFinal) {
  at::manual_seed(5);
  Network plain(false);
  std::vector<std::shared_ptr<NetworkBlock>> plain_blocks, blocks;
  at::manual_seed(6);
  const auto expected =
      GradientsThroughBlocks(*CheckpointPolicy::Parse("none", {"a", "b", "c"}), plain, plain_blocks);
  at::manual_seed(5);
  Network network(false);
  at::manual_seed(6);
  const auto gradients =
      GradientsThroughBlocks(*CheckpointPolicy::Parse("every-2", {"a", "b", "c"}), network, blocks);
  EXPECT_EQ(network.calls, kBlocks + 2);
  EXPECT_EQ(blocks[0]->finals, (std::vector<bool>{true, false}));
  EXPECT_EQ(blocks[1]->finals, (std::vector<bool>{true}));
  ASSERT_EQ(gradients.size(), expected.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) EXPECT_TRUE(gradients[i].equal(expected[i])) << i;
}

}  // namespace
}  // namespace plait::parallel
