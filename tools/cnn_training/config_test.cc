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

TEST(Config, MeshesAreThoseOfTheStrategy) {
  EXPECT_EQ(MeshOf(With("ddp", ""), 6)->dp_replicate, 6);
  EXPECT_EQ(MeshOf(With("zero2", ""), 6)->dp_shard, 6);
  EXPECT_EQ(MeshOf(With("fsdp", "dp_replicate=2,dp_shard=-1"), 6)->dp_shard, 3);
  EXPECT_EQ(ErrorOf(With("fsdp", "tp=2"), 2).find("--mesh=tp=2: no axis \"tp\""), 0u);
  EXPECT_EQ(ErrorOf(With("ddp", "dp_shard=2"), 2).find("--mesh=dp_shard=2: ddp keeps everything whole"), 0u);
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
