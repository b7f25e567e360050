// Forward and backward passes in unusual orders, against the same passes on plain tensors, in float64; and the errors
// of invalid ones.
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <stdexcept>
#include <string>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

using comm::testing::World;
using models::BlockForward;
using models::BlockState;
using ::testing::HasSubstr;

// Sums of some 100 rounded products of numbers around one, through four layers.
constexpr double kTolerance = 1e-12;

struct Setting {
  Strategy strategy;
  bool reshard = true;
  bool prefetch = true;
};

std::vector<Setting> Settings() {
  std::vector<Setting> all;
  for (const Strategy strategy : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
    for (const bool reshard : {true, false}) {
      for (const bool prefetch : {true, false}) all.push_back({strategy, reshard, prefetch});
    }
  }
  return all;
}

std::string TextOf(const Setting& s) {
  return std::string(Name(s.strategy)) + (s.reshard ? "" : " keeps") + (s.prefetch ? "" : " no prefetch");
}

// A model in an engine over all ranks, and the same one on plain tensors.
struct Pair {
  explicit Pair(const Setting& s) : plain(at::kDouble), model(at::kDouble) {
    const char* axis = s.strategy == Strategy::kDdp ? "dp_replicate" : "dp_shard";
    const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(World(), {{axis, World().size()}});
    dp = *DataParallel::Create(
        mesh, model.units,
        {.strategy = s.strategy, .reshard_after_forward = s.reshard, .prefetch = s.prefetch});
    model.run = [this](std::size_t block, const BlockForward& forward, const BlockState& x) {
      return dp->Run(block, forward, x);
    };
  }
  ~Pair() { dp->WaitForParameters(); }

  // Loss of this rank's samples of one batch; on plain tensors, of all ranks' samples.
  at::Tensor Loss(int batch) {
    return dp->Forward([&] { return PartOf(model, World().rank(), batch); });
  }
  at::Tensor PlainLoss(int batch) {
    at::Tensor loss = PartOf(plain, 0, batch);
    for (int rank = 1; rank < World().size(); ++rank) loss = loss + PartOf(plain, rank, batch);
    return loss;
  }
  static at::Tensor PartOf(const TestingModel& of, int rank, int batch) {
    return of.Loss(TestNumbers({2, TestingModel::kWidth}, 100 + 10 * batch + rank),
                   TestNumbers({2, TestingModel::kWidth}, 200 + 10 * batch + rank));
  }

  // Every shard against the same elements of the plain gradients.
  void ExpectGradients() {
    std::map<std::string, at::Tensor> expected;
    for (const models::ParameterUnit& unit : plain.units) {
      for (const models::ParameterSpec& p : unit.parameters) {
        expected[p.name] = p.tensor.grad().defined() ? p.tensor.grad() : at::zeros_like(p.tensor.detach());
      }
    }
    for (const Shard& shard : dp->shards()) {
      for (const FlatSlice& slice : shard.layout->Slices(shard.rank)) {
        const std::string& name = shard.parameters[slice.parameter]->name;
        const at::Tensor whole = expected[name].flatten();
        const double size = std::max(1.0, whole.abs().max().item<double>());
        const at::Tensor mine = shard.gradient.narrow(0, slice.shard_offset, slice.end - slice.begin);
        const at::Tensor difference = mine - whole.narrow(0, slice.begin, slice.end - slice.begin);
        EXPECT_LE(difference.abs().max().item<double>(), kTolerance * size) << name;
      }
    }
  }

  TestingModel plain, model;
  std::unique_ptr<DataParallel> dp;
};

void ForEachSetting(const std::function<void(Pair&)>& check) {
  for (const Setting& s : Settings()) {
    SCOPED_TRACE(TextOf(s));
    Pair pair(s);
    check(pair);
  }
}

TEST(Holds, TwoForwardsBeforeTwoBackwardsInEitherOrder) {
  for (const bool first_first : {true, false}) {
    ForEachSetting([&](Pair& pair) {
      const at::Tensor one = pair.Loss(1), two = pair.Loss(2);
      pair.dp->Backward(first_first ? one : two, {.last = false});
      pair.dp->Backward(first_first ? two : one);
      (pair.PlainLoss(1) + pair.PlainLoss(2)).backward();
      pair.ExpectGradients();
    });
  }
}

TEST(Holds, OneBackwardOfTwoForwards) {
  ForEachSetting([](Pair& pair) {
    const at::Tensor one = pair.Loss(1), two = pair.Loss(2);
    pair.dp->Backward(one + 0.5 * two);
    (pair.PlainLoss(1) + 0.5 * pair.PlainLoss(2)).backward();
    pair.ExpectGradients();
  });
}

TEST(Holds, EvaluationBetweenAForwardAndItsBackward) {
  ForEachSetting([](Pair& pair) {
    const at::Tensor loss = pair.Loss(1);
    {
      const at::NoGradGuard no_grad;
      const double plain = Pair::PartOf(pair.plain, World().rank(), 7).item<double>();
      EXPECT_NEAR(pair.Loss(7).item<double>() / plain, 1, kTolerance);
    }
    pair.dp->Backward(loss);
    pair.PlainLoss(1).backward();
    pair.ExpectGradients();
  });
}

TEST(Holds, AForwardWithoutABackwardIsForgotten) {
  ForEachSetting([](Pair& pair) {
    static_cast<void>(pair.Loss(3));
    pair.dp->Backward(pair.Loss(1));
    pair.PlainLoss(1).backward();
    pair.ExpectGradients();
    pair.dp->AllGatherParameters();
    pair.dp->Backward(pair.Loss(1));
    pair.ExpectGradients();
  });
}

// Blocks 0 and 2 are one block; every use of it is a checkpoint or not.
TEST(Holds, ABlockThatIsUsedTwice) {
  for (const int checkpointed : {0, 1, 2, 3}) {
    ForEachSetting([&](Pair& pair) {
      int calls = 0;
      for (TestingModel* of : {&pair.plain, &pair.model}) {
        const auto& p = of->units[1].parameters;
        of->run = [&, run = of->run, is_model = of == &pair.model](
                      std::size_t block, const BlockForward& forward, const BlockState& x) {
          const BlockForward first = [&p](const BlockState& in) {
            return BlockState{in.hidden + at::tanh(at::mm(in.hidden * p[0].tensor, p[1].tensor))};
          };
          if (block == 1) return run(block, forward, x);
          const bool repeats = is_model && (checkpointed >> (block / 2) & 1) != 0;
          const BlockForward repeated = [&calls, first](const BlockState& in) {
            return CheckpointActivations(
                [&calls, first](const BlockState& y, bool) { return ++calls, first(y); }, in);
          };
          return run(0, repeats ? repeated : first, x);
        };
      }
      pair.dp->Backward(pair.Loss(1));
      pair.PlainLoss(1).backward();
      pair.ExpectGradients();
      EXPECT_EQ(calls, 2 * ((checkpointed & 1) + (checkpointed >> 1))) << "not recomputed";
    });
  }
}

// The scale of block 2 is also used by blocks 0 and 1, which are checkpointed: parts of its gradient arrive after the
// block's own reduction has started.
TEST(Holds, AParameterThatSeveralCheckpointedBlocksUse) {
  ForEachSetting([](Pair& pair) {
    if (ShardsParameters(pair.dp->options().strategy) && World().size() > 1) return;  // sharded there
    for (TestingModel* of : {&pair.plain, &pair.model}) {
      const at::Tensor scale = of->units[3].parameters[0].tensor;
      const bool checkpoints = of == &pair.model;
      of->run = [=, run = of->run](std::size_t block, const BlockForward& forward, const BlockState& x) {
        const auto scaled = [=](const BlockState& in, bool) {
          return block == 2 ? forward(in) : forward({in.hidden * scale});
        };
        return run(
            block,
            [=](const BlockState& in) {
              return checkpoints ? CheckpointActivations(scaled, in) : scaled(in, true);
            },
            x);
      };
    }
    pair.dp->Backward(pair.Loss(1));
    pair.PlainLoss(1).backward();
    pair.ExpectGradients();
  });
}

TEST(Holds, ABlockThatAllRanksSkip) {
  ForEachSetting([](Pair& pair) {
    for (TestingModel* of : {&pair.plain, &pair.model}) {
      of->run = [run = of->run](std::size_t block, const BlockForward& forward, const BlockState& x) {
        return block == 1 ? x : run(block, forward, x);
      };
    }
    for (int step = 0; step < 2; ++step) {  // the second with a learned order
      pair.dp->Backward(pair.Loss(1));
      if (step == 0) pair.PlainLoss(1).backward();
      pair.ExpectGradients();
      pair.dp->AllGatherParameters();
    }
  });
}

TEST(Holds, GradientsThatAutogradDidNotCompute) {
  ForEachSetting([](Pair& pair) {
    const at::Tensor loss = pair.Loss(1);
    const at::Tensor& bias = pair.model.units[1].parameters[2].tensor;
    const at::Tensor given = TestNumbers({TestingModel::kWidth}, 5);
    pair.dp->Backward([&] {
      loss.backward();
      pair.dp->AddGradient(bias, given);
    });
    pair.PlainLoss(1).backward();
    pair.plain.units[1].parameters[2].tensor.mutable_grad().add_(given * World().size());
    pair.ExpectGradients();
  });
}

TEST(Holds, AnExceptionInABlockLeavesTheEngineUsable) {
  ForEachSetting([](Pair& pair) {
    const TestingModel::Runner run = pair.model.run;
    pair.model.run = [&](std::size_t block, const BlockForward& forward, const BlockState& x) {
      if (block < 2) return run(block, forward, x);
      return run(
          block, [](const BlockState&) -> BlockState { throw std::runtime_error("in a block"); }, x);
    };
    EXPECT_THROW(pair.Loss(1), std::runtime_error);
    pair.model.run = run;
    pair.dp->Backward(pair.Loss(1));
    pair.PlainLoss(1).backward();
    pair.ExpectGradients();
  });
}

// What the sanitizers watch: the blocks that the forward pass has left unsharded are resharded by an engine that is whole.
TEST(Holds, AnEngineMayEndAfterAForwardPass) {
  ForEachSetting([](Pair& pair) {
    pair.dp->BeginStage({.first = 0, .count = TestingModel::kBlocks, .following = 0});
    EXPECT_EQ(pair.Loss(1).numel(), 1);
  });
}

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(Holds, BackwardOutsideTheEngineSaysWhatToCall) {
  ForEachSetting([](Pair& pair) {
    const at::Tensor loss = pair.Loss(1);
    EXPECT_THAT(MessageOf([&] { loss.backward(); }), HasSubstr("call DataParallel::Backward(loss)"));
  });
}

TEST(Holds, BackwardAfterTheStepIsAnError) {
  ForEachSetting([](Pair& pair) {
    const at::Tensor early = pair.Loss(1);
    pair.dp->Backward(pair.Loss(2));
    pair.dp->AllGatherParameters();
    EXPECT_THAT(MessageOf([&] { pair.dp->Backward(early); }), HasSubstr("before the last optimizer step"));
  });
}

TEST(Holds, ABlockOutsideRunSaysThatItsUnitIsSharded) {
  if (World().size() == 1) return;  // nothing is sharded
  Pair pair({Strategy::kFsdp});
  pair.model.run = [](std::size_t, const BlockForward& forward, const BlockState& x) { return forward(x); };
  EXPECT_THAT(MessageOf([&] { pair.Loss(1); }),
              HasSubstr("block.0.scale is read while unit \"block.0\" is sharded: run its block through "
                        "DataParallel::Run"));
  EXPECT_THAT(MessageOf([&] { Pair::PartOf(pair.model, 0, 1); }), HasSubstr("is sharded"));
}

TEST(HoldsDeathTest, ASecondLastBackwardWithoutAStep) {
  if (World().size() > 1) return;  // ranks do not fork
  Pair pair({Strategy::kZero1});
  pair.dp->Backward(pair.Loss(1));
  const at::Tensor loss = pair.Loss(1);
  EXPECT_DEATH(pair.dp->Backward(loss), "call the optimizer's Step first");
}

// A step would repeat the last one's gradients, or take those that only this rank has.
TEST(HoldsDeathTest, AStepWithoutReducedGradients) {
  if (World().size() > 1) return;  // ranks do not fork
  constexpr char kWhat[] = "call Backward before it, for the last micro-batch";
  Pair pair({Strategy::kDdp});
  EXPECT_DEATH(pair.dp->GradientNorm(), kWhat);
  pair.dp->Backward(pair.Loss(1));
  EXPECT_GT(pair.dp->GradientNorm(), 0);
  pair.dp->AllGatherParameters();
  EXPECT_DEATH(pair.dp->GradientNorm(), kWhat);
  pair.dp->Backward(pair.Loss(1), {.last = false});
  EXPECT_DEATH(pair.dp->GradientNorm(), kWhat);
}

TEST(Holds, ATensorThatIsListedTwiceIsRefused) {
  for (const bool in_one_unit : {true, false}) {
    TestingModel model(at::kDouble);
    models::ParameterUnit& unit = model.units[in_one_unit ? 1 : 2];
    unit.parameters[0].tensor = model.units[1].parameters[2].tensor;
    const auto dp = DataParallel::Create(*comm::DeviceMesh::Create(World(), {{"dp_shard", World().size()}}),
                                         model.units, {.strategy = Strategy::kZero2});
    EXPECT_THAT(std::string(dp.status().message()), HasSubstr("is the same tensor as block.0."));
    EXPECT_THAT(std::string(dp.status().message()), HasSubstr("list a tied parameter once, in a root unit"));
  }
}

TEST(Holds, TypesThatCannotBeReducedAreRefused) {
  const auto error = [](TestingModel& model, const DataParallelOptions& options) {
    return std::string(
        DataParallel::Create(*comm::DeviceMesh::Create(World(), {{"dp_replicate", World().size()}}),
                             model.units, options)
            .status()
            .message());
  };
  TestingModel narrow(at::kBFloat16);
  EXPECT_THAT(error(narrow, {.strategy = Strategy::kDdp, .reproducible = true}),
              HasSubstr("reproducible sums: parameters are BFloat16; expected Float or Double"));
  TestingModel model(at::kDouble);
  model.units[0].parameters.push_back(
      {"steps", at::zeros({2}, at::kChar), /*decays=*/false, models::ParameterRole::kBuffer});
  EXPECT_THAT(error(model, {.strategy = Strategy::kDdp}),
              HasSubstr("steps: is Char, which collectives do not support"));
}

}  // namespace
}  // namespace plait::parallel
