#include "tools/cnn_training/config.h"

#include <gtest/gtest.h>

#include <string>

namespace plait::cnn_training {
namespace {

std::string ErrorOf(const Config& config, int ranks) { return std::string(Check(config, ranks).message()); }

Config With(const std::string& strategy, const std::string& mesh) {
  Config config;
  config.strategy = strategy;
  config.mesh = mesh;
  return config;
}

TEST(Config, DefaultsWorkOnAnyRanks) {
  for (const int ranks : {1, 2, 7}) EXPECT_TRUE(Check(Config(), ranks).ok());
}

TEST(Config, StrategiesChooseTheAxis) {
  for (const std::string strategy : {"zero1", "zero2", "fsdp"}) {
    EXPECT_EQ(MeshOf(With(strategy, ""), 6)->dp_shard, 6) << strategy;
    EXPECT_EQ(MeshOf(With(strategy, ""), 6)->dp_replicate, 1) << strategy;
  }
  EXPECT_EQ(MeshOf(With("ddp", ""), 6)->dp_replicate, 6);
}

TEST(Config, MeshesAreRead) {
  EXPECT_EQ(MeshOf(With("fsdp", "dp_replicate=2,dp_shard=3"), 6)->dp_replicate, 2);
  EXPECT_EQ(MeshOf(With("fsdp", "dp_replicate=2,dp_shard=-1"), 6)->dp_shard, 3);
  EXPECT_EQ(MeshOf(With("fsdp", "dp_replicate=-1,dp_shard=3"), 6)->dp_replicate, 2);
  EXPECT_EQ(MeshOf(With("zero1", "dp_shard=6"), 6)->dp_replicate, 1);
  EXPECT_EQ(MeshOf(With("ddp", "dp_replicate=6"), 6)->ranks(), 6);
}

TEST(Config, RanksToStartAreThoseOfTheMesh) {
  Config config = With("fsdp", "dp_replicate=2,dp_shard=3");
  EXPECT_EQ(*RanksToStart(config, 64), 6);
  config.nproc = 5;
  EXPECT_EQ(*RanksToStart(config, 64), 5);
  EXPECT_EQ(*RanksToStart(With("fsdp", "dp_replicate=2,dp_shard=-1"), 4), 4);
  EXPECT_EQ(*RanksToStart(Config(), 64), kMostDefaultRanks);
  EXPECT_EQ(*RanksToStart(Config(), 0), 1);
}

TEST(Config, RefusesMeshesThatCannotBe) {
  EXPECT_EQ(
      ErrorOf(With("fsdp", "dp_replicate=2,dp_shard=2"), 2),
      "--mesh=dp_replicate=2,dp_shard=2: 2 x 2 = 4 ranks, but there are 2; give --nproc=4 or another mesh");
  EXPECT_NE(ErrorOf(With("fsdp", "dp_replicate=4,dp_shard=-1"), 6).find("4 x 1 = 4 ranks"),
            std::string::npos);
  EXPECT_NE(ErrorOf(With("ddp", "dp_shard=2"), 2).find("ddp shards nothing"), std::string::npos);
  for (const std::string mesh : {"2,2", "dp_shard", "dp_shard=0", "dp_shard=-2", "dp_shard=x", "tp=2",
                                 "dp_shard=2,dp_shard=2", "dp_shard=-1,dp_replicate=-1", "dp_shard=2,"}) {
    EXPECT_EQ(ErrorOf(With("fsdp", mesh), 2).find("--mesh=" + mesh + ": expected axes and their ranks"), 0u)
        << ErrorOf(With("fsdp", mesh), 2);
  }
}

TEST(Config, NamesTheFlagThatIsWrong) {
  const auto expect = [](const char* flag, void (*change)(Config&)) {
    Config config;
    change(config);
    EXPECT_EQ(ErrorOf(config, 1).find(flag), 0u) << ErrorOf(config, 1);
  };
  expect("--batch-size=0: expected at least 1", [](Config& c) { c.batch_size = 0; });
  expect("--test-batch-size=0", [](Config& c) { c.test_batch_size = 0; });
  expect("--epochs=0", [](Config& c) { c.epochs = 0; });
  expect("--lr=-1: expected 0 to", [](Config& c) { c.lr = -1; });
  expect("--gamma=2: expected 0 to 1", [](Config& c) { c.gamma = 2; });
  expect("--dropout1=1.5", [](Config& c) { c.dropout1 = 1.5; });
  expect("--dtype=int8: expected float32, bfloat16 or float64", [](Config& c) { c.dtype = "int8"; });
  expect("--strategy: ", [](Config& c) { c.strategy = "zero4"; });
  expect("--max-samples=-1", [](Config& c) { c.max_samples = -1; });
  expect("--checkpoint-every and --keep-last are of no use", [](Config& c) { c.checkpoint_every = 5; });
  expect("--checkpoint-every=-1", [](Config& c) { c.checkpoint_every = -1; });
}

}  // namespace
}  // namespace plait::cnn_training
