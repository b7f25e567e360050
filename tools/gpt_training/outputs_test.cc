// What a step has sent, and for how long it stood still, is that step's alone.
#include "tools/gpt_training/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"
#include "data/history/history_table.h"

namespace plait::gpt_training {
namespace {

using comm::testing::World;

TEST(Outputs, TrafficIsThatOfTheStep) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", World().size(), "_traffic");
  if (World().rank() == 0) std::filesystem::remove_all(folder);
  World().Barrier();
  Config config;
  config.outputs = folder;
  config.trace = false;
  Outputs outputs = *Outputs::Open(config, {}, World(), /*resumed_draws=*/-1);
  const comm::Communicator shard = World().Split(0, World().rank(), "dp_shard");
  std::vector<double> values(1000, 1.0);
  const auto reduce = [&] { shard.AllReduce(comm::BufferOf(absl::MakeSpan(values))); };
  for (int call = 0; call < 5; ++call) reduce();  // before the steps: nobody's
  outputs.BeginSteps();
  for (const int calls : {1, 3, 0}) {
    for (int call = 0; call < calls; ++call) reduce();
    outputs.EndStep({.step = calls});
    reduce();  // of an estimate: no step's either
    EXPECT_TRUE(outputs.Record({.step = calls}, 0).ok());
  }
  EXPECT_TRUE(outputs.Close().ok());
  if (World().rank() != 0 || World().size() == 1) return;
  const data::HistoryTable table = *data::HistoryTable::Open(outputs.history_path());
  const std::vector<double> bytes = *table.Column("comm_bytes_dp_shard");
  const std::vector<double> in_flight = *table.Column("comm_in_flight_dp_shard");
  const std::vector<double> exposed = *table.Column("comm_exposed_dp_shard");
  ASSERT_EQ(bytes.size(), 3u);
  EXPECT_GT(bytes[0], 0);
  EXPECT_DOUBLE_EQ(bytes[1], 3 * bytes[0]);
  EXPECT_EQ(bytes[2], 0);
  for (const int step : {0, 1}) {
    EXPECT_GT(exposed[step], 0);
    // A blocking call stands still from its begin to its end; two clock readings lie between, and sums round.
    EXPECT_LE(exposed[step], in_flight[step] * (1 + 1e-9));
  }
  EXPECT_EQ(in_flight[2], 0);
  EXPECT_EQ(exposed[2], 0);
  EXPECT_THAT(*table.Column("comm_exposed_dp_replicate"), ::testing::Each(0));
}

}  // namespace
}  // namespace plait::gpt_training
