#include "data/folder_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace plait::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string NewFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TEST(NamesIn, SortsByBytesWhatIsWantedAndNotHidden) {
  const std::string folder = NewFolder("sorted");
  for (const char* name : {"b.txt", "B.txt", ".c.txt", "a.txt", "a.bin"})
    std::ofstream(folder + "/" + name) << name;
  const auto is_text = [](const fs::directory_entry& entry) { return entry.path().extension() == ".txt"; };
  EXPECT_THAT(*NamesIn(folder, is_text), ElementsAre("B.txt", "a.txt", "b.txt"));
}

TEST(NamesIn, AFolderThatCannotBeListedIsAnError) {
  const std::string folder = NewFolder("unlisted");
  std::ofstream(folder + "/file") << "x";
  const auto all = [](const fs::directory_entry&) { return true; };
  EXPECT_EQ(NamesIn(folder + "/missing", all).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(NamesIn(folder + "/file", all).status().message()),
              StartsWith(folder + "/file: cannot be listed"));
}

TEST(ClassFoldersIn, TakesFoldersAndLinksToThem) {
  const std::string folder = NewFolder("classes");
  fs::create_directory(folder + "/dog");
  fs::create_directory_symlink("dog", folder + "/cat");
  std::ofstream(folder + "/notes") << "x";
  EXPECT_THAT(*ClassFoldersIn(folder), ElementsAre("cat", "dog"));
}

TEST(ClassFoldersIn, ALineBreakInANameIsAnError) {
  const std::string folder = NewFolder("broken");
  fs::create_directory(folder + "/a\nb");
  EXPECT_THAT(std::string(ClassFoldersIn(folder).status().message()),
              AllOf(StartsWith(folder + "/a\\nb: "), HasSubstr("line break")));
}

}  // namespace
}  // namespace plait::data
