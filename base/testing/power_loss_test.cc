// Tests the simulation: it finds what can be lost without fsync, or with fsync in the wrong place.
#include "base/testing/power_loss.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/path.h"

namespace plait::base::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PowerLossTest : public ::testing::Test {
 protected:
  PowerLossTest() : folder_(::testing::TempDir() + "/power_loss_test" + std::to_string(getpid())) {
    fs::create_directory(folder_);
    std::ofstream(folder_ + "/file") << "old";
  }
  ~PowerLossTest() override { RemoveTree(folder_); }

  static void Sync(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY);
    fsync(file);
    close(file);
  }

  // Replaces the file, with or without the fsyncs that make it safe.
  PowerLossReport Replace(bool sync_file, bool sync_folder) const {
    const std::string partial = folder_ + "/partial", file = folder_ + "/file";
    const auto replace = [&](const Mark& mark) {
      std::FILE* stream = std::fopen(partial.c_str(), "w");
      std::fputs("new", stream);
      std::fclose(stream);
      if (sync_file) Sync(partial);
      std::rename(partial.c_str(), file.c_str());
      if (sync_folder) Sync(folder_);
      mark(1);
      return true;
    };
    return LosePower(folder_, replace, [](const std::string& folder, int mark) -> std::string {
      std::ifstream stream(folder + "/file");
      const std::string text(std::istreambuf_iterator<char>(stream), {});
      if (text == "new" || (mark == 0 && text == "old")) return "";
      return "holds \"" + text + "\"";
    });
  }

  std::string folder_;
};

TEST_F(PowerLossTest, AReplacedFileIsOldOrNew) {
  const PowerLossReport report = Replace(true, true);
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_GE(report.states, 5);
}

TEST_F(PowerLossTest, WithoutFsyncOfTheFileItsContentsAreLost) {
  const std::vector<std::string> faults = Replace(false, true).faults;
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults.front(), HasSubstr("without [write \"partial\"]: holds \"\""));
}

TEST_F(PowerLossTest, WithoutFsyncOfTheFolderTheNameIsLost) {
  const std::vector<std::string> faults = Replace(true, false).faults;
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults.front(), HasSubstr("rename \"partial\" \"file\"]: holds \"old\""));
}

}  // namespace
}  // namespace plait::base::testing
