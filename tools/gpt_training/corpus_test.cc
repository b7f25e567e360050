// Lines of a text that is known by heart.
#include "tools/gpt_training/corpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace plait::gpt_training {
namespace {

absl::StatusOr<Corpus> Open(const std::string& text, std::vector<std::string>* notes) {
  const std::string folder = std::string(std::getenv("TEST_TMPDIR")) + "/corpus";
  std::filesystem::create_directories(folder);
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  GptSettings settings;
  settings.data = folder + "/input.txt";
  std::ofstream(settings.data) << text;
  return OpenCorpus(settings, comm::Communicator::Self(),
                    [&](const std::string& line) { notes->push_back(line); });
}

TEST(CorpusTest, NanoGptsLines) {
  std::string text;
  for (int k = 0; k < 400; ++k) text += "to be\n";
  text += "\tor";
  std::vector<std::string> notes;
  const absl::StatusOr<Corpus> corpus = Open(text, &notes);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_EQ(CorpusLines(*corpus),
            "length of dataset in characters: 2,403\n"
            "all the unique characters: \\x09\n beort\n"
            "vocab size: 8\n"
            "train has 2,162 tokens\n"  // nine tenths, rounded down
            "val has 241 tokens");
  EXPECT_FALSE(notes.empty());
}

TEST(CorpusTest, TooShort) {
  std::vector<std::string> notes;
  EXPECT_EQ(Open("", &notes).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace plait::gpt_training
