// As save_power_loss_test.cc, but two ranks save (testing/save_versions.cc): a checkpoint is named complete only after
// every rank's file is on the disk. Rank 0 tells when a save has returned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/path.h"
#include "base/testing/power_loss.h"
#include "parallel/checkpoint/testing/planned_saves.h"

namespace plait::parallel {
namespace {

constexpr char kLaunch[] = "comm/testing/run_on_ranks.sh";
constexpr char kProgram[] = "parallel/checkpoint/save_versions";

TEST(PowerLoss, AtAnyPointOfSavesOfTwoRanks) {
  const std::string folder = ::testing::TempDir() + "/save_power_loss_ranks";
  base::RemoveTree(folder);
  std::filesystem::create_directory(folder);
  const base::testing::PowerLossReport report = base::testing::LosePower(
      folder,
      [&](const base::testing::Mark&) {
        execl("/bin/sh", "sh", kLaunch, "2", kProgram, folder.c_str(), nullptr);
        return false;
      },
      testing::WhatIsWrong);
  EXPECT_THAT(report.faults, ::testing::IsEmpty());
  EXPECT_GT(report.states, 300);
  RecordProperty("operations", report.operations);
  RecordProperty("states", report.states);
}

}  // namespace
}  // namespace plait::parallel
