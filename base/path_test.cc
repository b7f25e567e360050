#include "base/path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "gtest/gtest.h"

namespace plait::base {
namespace {

namespace fs = std::filesystem;

// Sets or removes a variable, and puts the old value back.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    Put(value);
  }
  ~ScopedVariable() { Put(old_ ? old_->c_str() : nullptr); }

 private:
  void Put(const char* value) { value != nullptr ? setenv(name_, value, 1) : unsetenv(name_); }

  const char* name_;
  std::optional<std::string> old_;
};

class PathTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/path_test_" + info->name() + std::to_string(getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string folder_;
};

TEST_F(PathTest, RelativeToWhereTheUserTyped) {
  const ScopedVariable typed("BUILD_WORKING_DIRECTORY", "/home/ada/runs");
  EXPECT_EQ(FromUser("data/x.h5"), "/home/ada/runs/data/x.h5");
  EXPECT_EQ(FromUser("../x"), "/home/ada/x");
  EXPECT_EQ(FromUser("/tmp/x"), "/tmp/x");
  EXPECT_EQ(FromUser(""), "");
}

TEST_F(PathTest, RelativeToTheWorkingDirectoryWithoutBazelRun) {
  const ScopedVariable typed("BUILD_WORKING_DIRECTORY", nullptr);
  EXPECT_EQ(FromUser("x"), (fs::current_path() / "x").string());
}

TEST_F(PathTest, HomeFolder) {
  const ScopedVariable home("HOME", "/home/ada");
  EXPECT_EQ(FromUser("~/x"), "/home/ada/x");
  EXPECT_EQ(FromUser("/~/x"), "/~/x");
}

TEST_F(PathTest, ProbeMakesTheFolderAndLeavesNothingInIt) {
  const std::string deep = folder_ + "/a/b";
  EXPECT_TRUE(ProbeWritableFolder(deep).ok());
  EXPECT_TRUE(fs::is_directory(deep));
  EXPECT_TRUE(fs::is_empty(deep));
}

TEST_F(PathTest, ProbeNamesAFileInTheWay) {
  std::ofstream(folder_ + "/file") << "x";
  const absl::Status status = ProbeWritableFolder(folder_ + "/file/below");
  EXPECT_EQ(status.message(), "cannot create directory " + folder_ + "/file/below: Not a directory");
}

// The kernel refuses files in /proc to everybody, root too.
TEST_F(PathTest, ProbeOfAnUnwritableFolder) {
  const absl::Status status = ProbeWritableFolder("/proc");
  EXPECT_EQ(status.message().substr(0, 23), "cannot write in /proc: ");
  EXPECT_FALSE(ProbeWritableFile("/proc/plait.h5").ok());
}

TEST_F(PathTest, ProbeFile) {
  EXPECT_TRUE(ProbeWritableFile(folder_ + "/new.h5").ok());
  EXPECT_FALSE(fs::exists(folder_ + "/new.h5"));
  std::ofstream(folder_ + "/old.h5") << "kept";
  EXPECT_TRUE(ProbeWritableFile(folder_ + "/old.h5").ok());
  EXPECT_EQ(fs::file_size(folder_ + "/old.h5"), 4u);
  EXPECT_EQ(ProbeWritableFile(folder_).message(), folder_ + " is a folder; expected the name of a file");
  EXPECT_EQ(ProbeWritableFile(folder_ + "/absent/x.h5").message(),
            "cannot write " + folder_ + "/absent/x.h5: there is no folder " + folder_ + "/absent");
}

TEST_F(PathTest, RemoveTreeFollowsNoLinks) {
  fs::create_directories(folder_ + "/gone/a/b");
  fs::create_directories(folder_ + "/kept");
  std::ofstream(folder_ + "/kept/x") << "kept";
  std::ofstream(folder_ + "/gone/a/y") << "gone";
  fs::create_symlink(folder_ + "/kept", folder_ + "/gone/a/link");
  RemoveTree(folder_ + "/gone");
  EXPECT_FALSE(fs::exists(folder_ + "/gone"));
  EXPECT_TRUE(fs::exists(folder_ + "/kept/x"));
  RemoveTree(folder_ + "/kept/x");
  EXPECT_FALSE(fs::exists(folder_ + "/kept/x"));
  RemoveTree(folder_ + "/absent");
}

TEST_F(PathTest, CacheFolderFollowsTheEnvironment) {
  const ScopedVariable home("HOME", "/home/ada");
  {
    const ScopedVariable cache("XDG_CACHE_HOME", "/scratch");
    EXPECT_EQ(*CacheFolder(), "/scratch/plait");
  }
  const ScopedVariable relative("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(*CacheFolder(), "/home/ada/.cache/plait");
  const ScopedVariable nowhere("HOME", nullptr);
  EXPECT_EQ((*CacheFolder())[0], '/');
}

}  // namespace
}  // namespace plait::base
