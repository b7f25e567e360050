// Tests the simulation: it finds what can be lost without fsync, or with fsync in the wrong place.
#include "base/testing/power_loss.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

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

  // Replaces the file, with or without the fsyncs that make it safe. A process of its own may write it.
  PowerLossReport Replace(bool sync_file, bool sync_folder, bool in_child = false) const {
    const std::string partial = folder_ + "/partial", file = folder_ + "/file";
    const auto write = [&] {
      std::FILE* stream = std::fopen(partial.c_str(), "w");
      std::fputs("new", stream);
      std::fclose(stream);
      if (sync_file) Sync(partial);
    };
    const auto replace = [&](const Mark& mark) {
      const pid_t child = in_child ? fork() : 0;
      if (child == 0) write();
      if (in_child && child == 0) _exit(0);
      if (in_child && waitpid(child, nullptr, 0) != child) return false;
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

TEST_F(PowerLossTest, ProcessesOfTheProgramCount) {
  EXPECT_THAT(Replace(true, true, /*in_child=*/true).faults, IsEmpty());
  std::ofstream(folder_ + "/file") << "old";
  EXPECT_FALSE(Replace(false, true, /*in_child=*/true).faults.empty());
}

// One thread makes folders while another flushes the folder above: some are made between the beginning and the end of
// an fsync.
TEST_F(PowerLossTest, AnFsyncCoversWhatWasDoneBeforeItBegan) {
  const std::vector<FileOperation> operations = RecordFileOperations(folder_, [&](const Mark&) {
    std::thread other([&] {
      for (int i = 0; i < 300; ++i) fs::create_directory(folder_ + "/" + std::to_string(i));
    });
    for (int i = 0; i < 300; ++i) Sync(folder_);
    other.join();
    return true;
  });
  int between = 0;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].kind != FileOperation::Kind::kSync) continue;
    EXPECT_LE(operations[i].covers, static_cast<int>(i));
    between += operations[i].covers < static_cast<int>(i) ? 1 : 0;
  }
  EXPECT_GT(between, 0);
}

}  // namespace
}  // namespace plait::base::testing
