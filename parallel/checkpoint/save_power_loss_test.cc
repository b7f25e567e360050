// Simulated power failures at any point of a save, with any part of the unsynced data lost: checkpoints whose save had
// returned are intact, and every folder with the name of a complete checkpoint is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/path.h"
#include "base/testing/power_loss.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/testing/planned_saves.h"

namespace plait::parallel {
namespace {

TEST(PowerLoss, AtAnyPointOfSaves) {
  const std::string folder = ::testing::TempDir() + "/save_power_loss";
  base::RemoveTree(folder);
  std::filesystem::create_directory(folder);
  const base::testing::PowerLossReport report = base::testing::LosePower(
      folder,
      [&](const base::testing::Mark& promise) {
        return testing::SaveAsPlanned(comm::Communicator::Self(), folder, promise).ok();
      },
      testing::WhatIsWrong);
  EXPECT_THAT(report.faults, ::testing::IsEmpty());
  EXPECT_GT(report.states, 200);
  RecordProperty("operations", report.operations);
  RecordProperty("states", report.states);
}

}  // namespace
}  // namespace plait::parallel
