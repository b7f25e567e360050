#include "data/text/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/testing/har_files.h"
#include "data/text/character_tokenizer.h"
#include "data/text/testing/test_texts.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A new folder for each test.
class PrepareTextTest : public ::testing::Test {
 protected:
  PrepareTextTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/text_",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  TextOptions Options(const std::string& text) const { return {.text = text, .cache_dir = In("cache")}; }
  std::string Written(const std::string& name, const std::string& text) const {
    Write(In(name), text);
    return In(name);
  }

  const std::string folder_;
};

std::string Decoded(const Tokenizer& tokenizer, const std::vector<std::uint16_t>& tokens) {
  return *tokenizer.Decode(std::vector<std::int32_t>(tokens.begin(), tokens.end()));
}

TEST_F(PrepareTextTest, CharactersOfASmallText) {
  // 21 characters, 22 bytes: 18 for training (18.9 rounded down; nine tenths of the bytes were 19).
  const auto file = PrepareText(Options(Written("a.txt", "to be or not to be ök")));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_THAT(file->notes, SizeIs(1));
  EXPECT_THAT(
      file->notes[0],
      HasSubstr("21 characters; vocabulary 9 (characters); 18 tokens for training, 3 for validation"));
  const auto text = ReadPreparedText(file->path);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->code_points, ElementsAre(' ', 'b', 'e', 'k', 'n', 'o', 'r', 't', 0xF6));
  EXPECT_THAT(text->validation, ElementsAre(0, 8, 3));
  EXPECT_EQ(text->source, absl::StrCat(In("a.txt"), ", 22 bytes"));
  const auto tokenizer = OpenTokenizer(*text, "");
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(Decoded(**tokenizer, text->train), "to be or not to be");
}

// h5py and others see 16-bit arrays.
TEST_F(PrepareTextTest, TokensAreStoredIn16Bits) {
  const auto file = PrepareText(Options(Written("a.txt", std::string(1000000, 'a') + "b")));
  ASSERT_TRUE(file.ok());
  EXPECT_LT(fs::file_size(file->path), 2 * 1000001u + 65536u);
}

TEST_F(PrepareTextTest, SecondTimeReusesTheFile) {
  const TextOptions options = Options(Written("a.txt", "hello world, hello"));
  const auto first = PrepareText(options);
  const auto time = fs::last_write_time(first->path);
  const auto second = PrepareText(options);
  EXPECT_EQ(second->path, first->path);
  EXPECT_THAT(second->notes, IsEmpty());
  EXPECT_EQ(fs::last_write_time(second->path), time);
  const auto other = PrepareText(Options(Written("a.txt", "hello world, hullo")));
  EXPECT_NE(other->path, first->path);
}

// A flipped byte anywhere in the tokens is found, named in a note, and mended.
TEST_F(PrepareTextTest, DamagedCacheIsMadeAnew) {
  const TextOptions options = Options(Written("a.txt", MixedText(3000)));
  const auto file = PrepareText(options);
  const PreparedText good = *ReadPreparedText(file->path);
  std::string bytes = *ReadWholeFile(file->path);
  const std::string tokens(reinterpret_cast<const char*>(good.train.data()), good.train.size() * 2);
  const std::size_t at = bytes.find(tokens);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1000] ^= 1;
  Write(file->path, bytes);
  const absl::Status status = ReadPreparedText(file->path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), file->path + ": /train: checksum does not match, the file is damaged");
  const auto again = PrepareText(options);
  ASSERT_THAT(again->notes, SizeIs(2));
  EXPECT_THAT(again->notes[0], HasSubstr("prepared again"));
  EXPECT_EQ(ReadPreparedText(again->path)->train, good.train);
  // Cut short.
  fs::resize_file(file->path, fs::file_size(file->path) / 2);
  EXPECT_EQ(ReadPreparedText(file->path).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PrepareTextTest, ForeignFilesAreRefused) {
  File other = *File::Create(In("other.h5"));
  ASSERT_TRUE(SetAttribute(other, "/", "format", "plait sequences").ok());
  ASSERT_TRUE(other.Close().ok());
  EXPECT_THAT(std::string(ReadPreparedText(In("other.h5")).status().message()),
              HasSubstr("not a prepared text"));
  const auto file = PrepareText(Options(Written("a.txt", "hello world, hello")));
  File newer = *File::Open(file->path, File::Mode::kReadWrite);
  ASSERT_TRUE(SetAttribute(newer, "/", "format_version", std::int64_t{2}).ok());
  ASSERT_TRUE(newer.Close().ok());
  EXPECT_THAT(std::string(ReadPreparedText(file->path).status().message()),
              HasSubstr("of format 2, expected 1"));
  EXPECT_EQ(ReadPreparedText(In("absent.h5")).status().code(), absl::StatusCode::kNotFound);
}

// The vocabulary must be the one that the tokens were made with.
TEST_F(PrepareTextTest, TokensOutsideTheVocabularyAreRefused) {
  PreparedText text = *TokenizeCharacters({"hello world", "test"});
  text.train[3] = text.vocabulary_size;
  ASSERT_TRUE(WritePreparedText(In("t.h5"), text, "key").ok());
  EXPECT_THAT(std::string(ReadPreparedText(In("t.h5")).status().message()),
              HasSubstr("a token outside the vocabulary 0..7"));
  text = *TokenizeCharacters({"hello world", "test"});
  text.code_points.back() += 1;
  ASSERT_TRUE(WritePreparedText(In("t.h5"), text, "key").ok());
  EXPECT_THAT(std::string(ReadPreparedText(In("t.h5")).status().message()),
              HasSubstr("/code_points: checksum"));
}

TEST_F(PrepareTextTest, BytePairs) {
  const LearnedPairs learned = LearnPairs(MixedText(2000), 50);
  fs::create_directories(In("pairs"));
  Write(In("pairs/vocab.json"), learned.vocabulary);
  Write(In("pairs/merges.txt"), learned.merges);
  const std::string bytes = MixedText(4000) + "\xff\xc3";
  TextOptions options = Options(Written("a.txt", bytes));
  options.tokenizer = "gpt2";
  options.bpe_folder = In("pairs");
  const auto file = PrepareText(options);
  ASSERT_TRUE(file.ok()) << file.status();
  const PreparedText text = *ReadPreparedText(file->path);
  EXPECT_EQ(text.vocabulary_size, 306);
  EXPECT_THAT(text.code_points, IsEmpty());
  const auto tokenizer = OpenTokenizer(text, In("pairs"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(Decoded(**tokenizer, text.train) + Decoded(**tokenizer, text.validation), bytes);

  const LearnedPairs shorter = LearnPairs(MixedText(2000), 49);
  Write(In("pairs/vocab.json"), shorter.vocabulary);
  Write(In("pairs/merges.txt"), shorter.merges);
  EXPECT_EQ(OpenTokenizer(text, In("pairs")).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PrepareTextTest, ErrorsAreOneLine) {
  const auto message = [&](const TextOptions& options) {
    const absl::Status status = PrepareText(options).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
    return std::string(status.message());
  };
  EXPECT_THAT(message(Options(In("absent.txt"))), StartsWith(In("absent.txt") + ": cannot be read"));
  EXPECT_THAT(message(Options(Written("empty.txt", ""))), HasSubstr("empty.txt: the file is empty"));
  EXPECT_THAT(message(Options(Written("one.txt", "x"))), HasSubstr("cannot be split"));
  EXPECT_THAT(message(Options(Written("latin1.txt", "caf\xe9 au lait"))),
              HasSubstr("latin1.txt, 12 bytes: byte 3 of the text, 0xe9"));
  fs::create_directories(In("none"));
  EXPECT_THAT(message(Options(In("none"))), HasSubstr("no text in the *.txt files"));
  TextOptions words = Options(In("latin1.txt"));
  words.tokenizer = "words";
  EXPECT_EQ(message(words), "tokenizer \"words\" is unknown: take characters, gpt2 or sentencepiece");
}

TEST_F(PrepareTextTest, AHomeThatCannotBeWrittenNamesTheVariable) {
  const std::string before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/proc", 1);
  TextOptions options = Options(Written("a.txt", "abcabc"));
  options.cache_dir = "";
  const std::string message(PrepareText(options).status().message());
  EXPECT_TRUE(absl::StartsWith(message, "cannot create directory /proc/.cache/plait/data: ")) << message;
  EXPECT_TRUE(absl::EndsWith(message, "; set XDG_CACHE_HOME to a folder that can be written")) << message;
  setenv("HOME", before.c_str(), 1);
}

TEST_F(PrepareTextTest, FoldersAreJoinedByName) {
  Written("b.txt", "second");
  Written("a.txt", "first ");
  Written("c.md", "third");
  fs::create_symlink("c.md", In("c.txt"));
  EXPECT_EQ(ReadText(folder_)->text, "first secondthird");
}

TEST_F(PrepareTextTest, CompressedTextIsRefused) {
  Written("a.txt", "\x1f\x8b\x08 and so on");
  const std::string expected = In("a.txt") + ": a gzip file; expected text: unpack or convert it first";
  EXPECT_EQ(ReadText(In("a.txt")).status(), absl::InvalidArgumentError(expected));
  EXPECT_EQ(ReadText(folder_).status(), absl::InvalidArgumentError(expected));
}

TEST_F(PrepareTextTest, DefaultTextLeavesOutLinks) {
  Written("GPL-3", "three ");
  Written("Artistic", "art ");
  fs::create_symlink("GPL-3", In("GPL"));
  const auto text = DefaultText(folder_);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->text, "art three ");
  EXPECT_THAT(text->source, StartsWith("2 license texts of "));
  EXPECT_EQ(DefaultText(In("absent")).status().code(), absl::StatusCode::kNotFound);
}

// Exists on every Debian system; its size depends on the version of base-files, so this tests a lower bound.
TEST_F(PrepareTextTest, DefaultTextOfThisMachine) {
  const auto file = PrepareText(Options(""));
  ASSERT_TRUE(file.ok()) << file.status();
  const PreparedText text = *ReadPreparedText(file->path);
  EXPECT_GT(text.characters, 150000);
  EXPECT_EQ(static_cast<std::int64_t>(text.train.size()), text.characters * 9 / 10);
  EXPECT_THAT(ReadText("")->text, HasSubstr("GNU GENERAL PUBLIC LICENSE"));
}

// nanoGPT's numbers for tiny Shakespeare; without the file a made text of the same length and alphabet.
TEST_F(PrepareTextTest, TinyShakespeareAsNanoGpt) {
  std::string path = RealDataFolder().value_or("absent") + "/tinyshakespeare/input.txt";
  if (!fs::exists(path)) {
    std::string made(1115394, ' ');
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<char>('0' + i * i % 101 % 65);
    path = Written("made.txt", made);
  }
  const auto file = PrepareText(Options(path));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->notes[0], HasSubstr("1,115,394 characters; vocabulary "));
  const PreparedText text = *ReadPreparedText(file->path);
  EXPECT_EQ(text.train.size(), 1003854u);
  EXPECT_EQ(text.validation.size(), 111540u);
  const auto tokenizer = OpenTokenizer(text, "");
  EXPECT_EQ(Decoded(**tokenizer, text.train) + Decoded(**tokenizer, text.validation), *ReadWholeFile(path));
  if (RealDataFolder()) {
    EXPECT_EQ(text.vocabulary_size, 65);
    EXPECT_EQ(*(*tokenizer)->Encode("First"), (std::vector<std::int32_t>{18, 47, 56, 57, 58}));
  }
}

}  // namespace
}  // namespace plait::data
