// Statistics of a known text, and corpora that cannot be opened.
#include "tools/text_training/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"

namespace plait::text_training {
namespace {

struct TestSettings final : TextSettings {
  TestSettings() : TextSettings({"sequence", "lr"}) {}
  void Bind(training::SettingsTable&) override {}
  absl::Status Check(const std::vector<comm::MeshAxis>&) const override { return absl::OkStatus(); }
  ModelOptions Options(std::int64_t) const override { return {}; }
};

absl::StatusOr<Corpus> Open(const std::string& text, std::vector<std::string>* notes) {
  const std::string folder =
      std::string(std::getenv("TEST_TMPDIR")) + "/corpus" + std::to_string(comm::testing::World().rank());
  std::filesystem::create_directories(folder);
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  TestSettings settings;
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

TEST(CorpusTest, ATokenizerWithFilesNeedsTheirFolder) {
  TestSettings settings;
  settings.tokenizer = "sentencepiece";
  EXPECT_EQ(OpenCorpus(settings, comm::testing::World(), [](const std::string&) {}).status().message(),
            "--tokenizer=sentencepiece: expected --bpe-folder=DIR with its files");
}

TEST(CorpusTest, ATokenizersFolderNeedsTheTokenizer) {
  TestSettings settings;
  settings.bpe_folder = "bytes";
  EXPECT_EQ(OpenCorpus(settings, comm::testing::World(), [](const std::string&) {}).status().message(),
            "--bpe-folder=bytes: expected --tokenizer=gpt2 or sentencepiece");
}

TEST(CorpusTest, TokenFilesWithAnotherKindOfTokenizer) {
  TestSettings settings;
  const std::string folder =
      std::string(std::getenv("TEST_TMPDIR")) + "/kind" + std::to_string(comm::testing::World().rank());
  std::filesystem::create_directories(folder);
  for (const char* ids : {"train.bin", "val.bin"}) std::ofstream(folder + "/" + ids) << "abcd";
  for (const char* file : {"vocab.json", "merges.txt"}) std::ofstream(folder + "/" + file) << "{}";
  settings.data = folder;
  settings.tokenizer = "sentencepiece";
  const auto corpus = OpenCorpus(settings, comm::Communicator::Self(), [](const std::string&) {});
  EXPECT_THAT(std::string(corpus.status().message()), ::testing::HasSubstr("tokenizer.model"));
}

std::string Bytes(int count, int bytes_of_id) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < bytes_of_id; ++k) bytes.push_back(k == 0 ? static_cast<char>(1 + i % 100) : '\0');
  }
  return bytes;
}

// Of a file without an index.
std::string ErrorOfIds(int bytes_of_id, std::int64_t vocabulary) {
  TestSettings settings;
  settings.data = std::string(std::getenv("TEST_TMPDIR")) + "/ids" +
                  std::to_string(comm::testing::World().rank()) + ".bin";
  settings.vocab_size = vocabulary;
  std::ofstream(settings.data) << Bytes(1000, bytes_of_id);
  const auto corpus = OpenCorpus(settings, comm::Communicator::Self(), [](const std::string&) {});
  return std::string(corpus.status().message());
}

// Halves of 32-bit ids would be trained on.
TEST(CorpusTest, WithoutAnIndexIdsHave16Bits) {
  EXPECT_EQ(ErrorOfIds(2, 50304), "");
  EXPECT_EQ(ErrorOfIds(2, 1 << 16), "");
  EXPECT_THAT(ErrorOfIds(4, 50304), ::testing::HasSubstr("every second one is 0, as in ids of 32 bits"));
  EXPECT_THAT(ErrorOfIds(2, 128256), ::testing::HasSubstr("the vocabulary has 128256 tokens"));
}

TEST(CorpusTest, TooShort) {
  std::vector<std::string> notes;
  EXPECT_EQ(Open("", &notes).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CorpusTest, RandomTokensAreThoseOfTheSeed) {
  const absl::StatusOr<Corpus> corpus = RandomCorpus(3, 500);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_EQ(corpus->text.train, RandomCorpus(3, 500)->text.train);
  EXPECT_NE(corpus->text.train, RandomCorpus(4, 500)->text.train);
  EXPECT_EQ(CorpusLines(*corpus),
            "synthetic: random tokens, no text\n"
            "vocab size: 500\n"
            "train has 1,048,576 tokens\n"
            "val has 131,072 tokens");
  // All alike: chi-square of 500 bins, mean 499, six deviations of sqrt(2 * 499).
  std::vector<double> counts(500);
  for (const std::uint16_t token : corpus->text.train) ++counts.at(token);
  const double expected = static_cast<double>(corpus->text.train.size()) / 500;
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_NEAR(chi_square, 499, 6 * std::sqrt(2 * 499.0));
  EXPECT_EQ(RandomCorpus(3, 65537).status().message(),
            "--data=random: a vocabulary of 65537; expected 1 to 65536 tokens");
}

// As on hosts with file systems of their own.
TEST(CorpusTest, NamesTokenFilesThatOneRankLacks) {
  const comm::Communicator world = comm::testing::World();
  TestSettings settings;
  settings.data = absl::StrCat(std::getenv("TEST_TMPDIR"), "/tokens-", world.rank());
  settings.vocab_size = 7;
  std::filesystem::create_directories(settings.data);
  for (const char* name : {"/train.bin", "/val.bin"}) {
    if (world.rank() == 0) std::ofstream(settings.data + name) << std::string(200, '\0');
  }
  const absl::StatusOr<Corpus> corpus = OpenCorpus(settings, world, [](const std::string&) {});
  EXPECT_EQ(corpus.status().code(), absl::StatusCode::kNotFound) << corpus.status();
  EXPECT_NE(corpus.status().message().find("tokens-1/train.bin"), std::string::npos) << corpus.status();
}

}  // namespace
}  // namespace plait::text_training
