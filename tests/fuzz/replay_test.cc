// Every reader takes its corpus and mutations of it, in one process: no crash, no endless loop, and bounded memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "data/hdf5/atomic_file.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/readers.h"

namespace plait::fuzz {
namespace {

namespace fs = std::filesystem;

// RLIMIT_DATA of the whole process, in bytes: what it has at the start counts.
constexpr rlim_t kMostMemory = rlim_t{4} << 30;

std::vector<std::string> InputsOf(const std::string& reader) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator("tests/fuzz/corpus/" + reader)) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void Take(const Reader& reader, const std::string& bytes) {
  reader.take(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

class Replay : public ::testing::TestWithParam<Reader> {};

TEST_P(Replay, TakesItsCorpusAndMutationsOfIt) {
  const rlimit memory = {kMostMemory, RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &memory), 0);
  Take(GetParam(), "");
  const std::vector<std::string> inputs = InputsOf(GetParam().name);
  ASSERT_FALSE(inputs.empty());
  for (const std::string& path : inputs) {
    SCOPED_TRACE(path);
    const std::string bytes = *data::ReadWholeFile(path);
    Take(GetParam(), bytes);
    for (int number = 0; number < GetParam().mutations; ++number) Take(GetParam(), Mutation(bytes, number));
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, Replay, ::testing::ValuesIn(Readers()),
                         [](const auto& info) { return info.param.name; });

TEST(Mutation, IsTheSameEveryTimeAndMostlyADifferentText) {
  const std::string bytes(100, 'x');
  int same = 0;
  for (int number = 0; number < 100; ++number) {
    EXPECT_EQ(Mutation(bytes, number), Mutation(bytes, number));
    same += Mutation(bytes, number) == bytes;
  }
  EXPECT_LT(same, 10);
  EXPECT_NE(Mutation(bytes, 1), Mutation(bytes, 2));
}

}  // namespace
}  // namespace plait::fuzz
