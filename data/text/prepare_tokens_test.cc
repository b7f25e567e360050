// Corpora whose tokens are known: a vocabulary without merges has an id for each byte, its own number.
#include "data/text/prepare_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/power_loss.h"
#include "data/hdf5/atomic_file.h"
#include "data/text/byte_pair_tokenizer.h"
#include "data/text/token_file.h"
#include "data/text/tokenizer_folder.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kEnd = 256;

std::string Utf8(std::int32_t code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

std::string ByteVocabulary(bool with_end) {
  nlohmann::json vocabulary;
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[Utf8(CharacterOfByte(static_cast<std::uint8_t>(byte)))] = byte;
  if (with_end) vocabulary["<|endoftext|>"] = kEnd;
  return vocabulary.dump();
}

class PrepareTokensTest : public ::testing::Test {
 protected:
  PrepareTokensTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/prepare_",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/bpe");
    std::filesystem::create_directories(folder_ + "/corpus/more");
    Write("bpe/vocab.json", ByteVocabulary(/*with_end=*/true));
    Write("bpe/merges.txt", "#version: 0.2\n");
  }
  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteWholeFile(In(name), text).ok());
  }
  TokenOptions Options(const std::string& input) const {
    return {
        .input = In(input), .bpe_folder = In("bpe"), .out = In("out"), .validation_share = 0.5, .threads = 3};
  }
  // The tokens as text; that behind each document is ".".
  std::string Read(const std::string& name) const {
    const auto file = TokenFile::Open(In("out/" + name));
    EXPECT_TRUE(file.ok()) << file.status();
    std::string text;
    for (std::int64_t i = 0; i < (*file)->tokens().size(); ++i) {
      const std::int64_t id = (*file)->tokens()[i];
      text += id == kEnd ? '.' : static_cast<char>(id);
    }
    return text;
  }

  const std::string folder_;
};

TEST_F(PrepareTokensTest, FoldersOfTextAndLines) {
  Write("corpus/a.txt", "one");
  Write("corpus/b.jsonl", "{\"text\": \"two\"}\n\n{\"id\": 7, \"text\": \"\\u00fc\"}\r\n");
  Write("corpus/more/c.txt", "four");
  Write("corpus/none.txt", "");
  Write("corpus/ignored.md", "five");
  const auto made = PrepareTokens(Options("corpus"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Read("train.bin"), "one.\xC3\xBC.");
  EXPECT_EQ(Read("val.bin"), "two.four.");
  EXPECT_EQ(made->train.documents, 2);
  EXPECT_EQ(made->train.tokens, 7);
  EXPECT_EQ(made->validation.tokens, 9);
  EXPECT_EQ(made->empty_documents, 1);
  EXPECT_EQ(made->vocabulary_size, 257);
  // The tokenizer goes with them.
  const auto tokenizer = BytePairTokenizer::Load(In("out"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->digest(), BytePairTokenizer::Load(In("bpe"))->digest());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(In("out")))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("train.bin", "train.idx", "val.bin", "val.idx",
                                                     "vocab.json", "merges.txt"));
}

std::vector<std::int32_t> IdsOf(const std::string& path) {
  const auto file = TokenFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < (*file)->tokens().size(); ++i) ids.push_back((*file)->tokens()[i]);
  return ids;
}

// A corpus put together of links: to a directory outside, to one inside under two names, to the corpus itself.
TEST_F(PrepareTokensTest, LinksToDirectoriesAreFollowedOnce) {
  namespace fs = std::filesystem;
  for (const char* folder : {"elsewhere/deep", "corpus/z"}) fs::create_directories(In(folder));
  Write("corpus/b.txt", "B");
  Write("corpus/z/a.txt", "A");
  Write("elsewhere/c.txt", "C");
  Write("elsewhere/deep/d.txt", "D");
  Write("elsewhere/deep/e.txt", "E");
  fs::create_directory_symlink(In("corpus"), In("corpus/more/loop"));
  fs::create_directory_symlink(In("corpus/z"), In("corpus/a"));
  fs::create_directory_symlink("itself", In("corpus/itself"));
  fs::create_directory_symlink(In("nowhere"), In("corpus/broken"));
  fs::create_directory_symlink("../elsewhere", In("corpus/outside"));
  fs::create_directory_symlink(In("elsewhere/deep"), In("corpus/more/again"));
  const auto made = PrepareTokens(Options("corpus"));
  ASSERT_TRUE(made.ok()) << made.status();
  // b.txt, more/again/d.txt, more/again/e.txt, outside/c.txt, z/a.txt.
  EXPECT_EQ(Read("train.bin"), "B.E.A.");
  EXPECT_EQ(Read("val.bin"), "D.C.");
}

// The user's own byte pairs, beside the model that the tokens are of.
TEST_F(PrepareTokensTest, TheFolderOfTheTokenizerKeepsItsFiles) {
  Write("two.jsonl", "{\"text\": \"the cat\"}\n{\"text\": \"the mat\"}\n");
  std::filesystem::copy_file("data/text/testing/tokenizer.model", In("bpe/tokenizer.model"));
  TokenOptions options = Options("two.jsonl");
  options.out = In("bpe/../bpe/");
  ASSERT_TRUE(PrepareTokens(options).ok());
  EXPECT_EQ(ReadWholeFile(In("bpe/vocab.json")).value_or(""), ByteVocabulary(/*with_end=*/true));
  EXPECT_EQ(ReadWholeFile(In("bpe/merges.txt")).value_or(""), "#version: 0.2\n");
  std::vector<std::int32_t> ids = *(*LoadTokenizer(In("bpe")))->Encode("the cat");
  ids.push_back(2);
  EXPECT_EQ(IdsOf(In("bpe/train.bin")), ids);
}

TEST_F(PrepareTokensTest, DocumentsAreNotReplaced) {
  Write("corpus/a.txt", "a");
  Write("corpus/merges.txt", "b");
  std::filesystem::create_directories(In("pieces"));
  std::filesystem::copy_file("data/text/testing/tokenizer.model", In("pieces/tokenizer.model"));
  TokenOptions options = Options("corpus");
  options.bpe_folder = In("pieces");
  options.out = In("corpus");
  EXPECT_EQ(PrepareTokens(options).status().message(),
            In("corpus/merges.txt") +
                ": a document, but also a file that would be replaced; expected another directory for --out");
  EXPECT_EQ(ReadWholeFile(In("corpus/merges.txt")).value_or(""), "b");
  options.out = In("out");
  EXPECT_TRUE(PrepareTokens(options).ok());
}

TEST_F(PrepareTokensTest, Prompts) {
  Write("pairs.jsonl",
        "{\"q\": \"ab\", \"a\": \"c\"}\n{\"q\": \"\", \"a\": \"d\"}\n{\"q\": \"e\", \"a\": \"fg\"}\n{\"q\": "
        "\"h\", \"a\": \"i\"}\n");
  TokenOptions options = Options("pairs.jsonl");
  options.documents = {.text_key = "a", .prompt_key = "q"};
  ASSERT_TRUE(PrepareTokens(options).ok());
  EXPECT_EQ(Read("train.bin"), "abc.efg.");
  EXPECT_EQ(Read("val.bin"), "d.hi.");
  const auto file = TokenFile::Open(In("out/train.bin"));
  std::vector<std::int64_t> targets(8, 0);
  (*file)->documents()->Ignore(IgnoredTargets::kPrompts, 0, absl::MakeSpan(targets));
  EXPECT_THAT(targets, ElementsAre(-100, -100, 0, 0, -100, 0, 0, 0));
}

// Many threads, more documents than are tokenized at once, and an even share.
TEST_F(PrepareTokensTest, AsManyDocumentsAsThereAre) {
  std::string lines, train, validation;
  for (int k = 0; k < 1000; ++k) {
    const std::string text = absl::StrCat("document ", k, std::string(k % 100 == 0 ? 1 << 21 : 1, 'x'));
    absl::StrAppend(&lines, "{\"text\": \"", text, "\"}\n");
    absl::StrAppend(k % 20 == 19 ? &validation : &train, text, ".");
  }
  Write("many.jsonl", lines);
  TokenOptions options = Options("many.jsonl");
  options.validation_share = 0.05;
  const auto made = PrepareTokens(options);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(Read("train.bin") == train);
  EXPECT_TRUE(Read("val.bin") == validation);
  EXPECT_EQ(made->validation.documents, 50);
}

// No thread can start whose stack is larger than the address space.
TEST_F(PrepareTokensTest, FewerThreadsThanAskedFor) {
  Write("two.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 50), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  const auto made = PrepareTokens(Options("two.jsonl"));
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Read("train.bin"), "a.");
}

TEST_F(PrepareTokensTest, WithoutAnEndOfText) {
  Write("bpe/vocab.json", ByteVocabulary(/*with_end=*/false));
  Write("two.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  const auto made = PrepareTokens(Options("two.jsonl"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->has_end_of_text);
  EXPECT_EQ(Read("train.bin"), "a");
}

// 1 begins a document of this model, 2 ends it.
TEST_F(PrepareTokensTest, SentencePieces) {
  Write("pairs.jsonl", "{\"q\": \"the cat\", \"a\": \"sat\"}\n{\"q\": \"\", \"a\": \"on the mat\"}\n");
  TokenOptions options = Options("pairs.jsonl");
  options.documents = {.text_key = "a", .prompt_key = "q"};
  ASSERT_TRUE(PrepareTokens(options).ok());  // of byte pairs, which are replaced
  std::filesystem::create_directories(In("pieces"));
  std::filesystem::copy_file("data/text/testing/tokenizer.model", In("pieces/tokenizer.model"));
  options.bpe_folder = In("pieces");
  const auto made = PrepareTokens(options);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->has_end_of_text);
  EXPECT_EQ(made->vocabulary_size, 400);
  const auto tokenizer = LoadTokenizer(In("out"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->name(), "SentencePiece");
  const std::pair<const char*, const char*> parts[] = {{"out/train.bin", "the cat sat"},
                                                       {"out/val.bin", "on the mat"}};
  for (const auto& [name, text] : parts) {
    const std::vector<std::int32_t> ids = IdsOf(In(name));
    EXPECT_EQ(ids.front(), 1);
    EXPECT_EQ(ids.back(), 2);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 1) + std::count(ids.begin(), ids.end(), 2), 2) << name;
    EXPECT_EQ(*(*tokenizer)->Decode(ids), text);
  }
  EXPECT_FALSE(std::filesystem::exists(In("out/vocab.json")));
  // Beside byte pairs, each kind is what it is asked for.
  std::filesystem::copy_file(In("bpe/vocab.json"), In("pieces/vocab.json"));
  std::filesystem::copy_file(In("bpe/merges.txt"), In("pieces/merges.txt"));
  for (const char* kind : {kGpt2, kSentencePiece})
    EXPECT_EQ(KindOf(**LoadTokenizer(In("pieces"), kind)), kind);
  EXPECT_EQ(KindOf(**LoadTokenizer(In("pieces"))), kSentencePiece);
  // Back again.
  options.bpe_folder = In("bpe");
  ASSERT_TRUE(PrepareTokens(options).ok());
  EXPECT_EQ((*LoadTokenizer(In("out")))->name(), "GPT-2 byte pairs");
}

// What says how the vocabulary is used goes with it, and with it only.
TEST_F(PrepareTokensTest, SettingsOfTheTokenizerGoWithIt) {
  Write("two.jsonl", "{\"text\": \"the cat\"}\n{\"text\": \"the mat\"}\n");
  std::filesystem::create_directories(In("pieces"));
  std::filesystem::copy_file("data/text/testing/tokenizer.model", In("pieces/tokenizer.model"));
  Write("pieces/tokenizer_config.json", "{\"add_bos_token\": false}");
  TokenOptions options = Options("two.jsonl");
  options.bpe_folder = In("pieces");
  ASSERT_TRUE(PrepareTokens(options).ok());
  const std::vector<std::int32_t> ids = IdsOf(In("out/train.bin"));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 0);
  EXPECT_EQ((*LoadTokenizer(In("out")))->digest(), (*LoadTokenizer(In("pieces")))->digest());
  std::filesystem::remove(In("pieces/tokenizer_config.json"));
  ASSERT_TRUE(PrepareTokens(options).ok());
  EXPECT_FALSE(std::filesystem::exists(In("out/tokenizer_config.json")));
  EXPECT_EQ(IdsOf(In("out/train.bin")).front(), 1);
}

// val.idx cannot get its name where a folder has it, which comes behind the vocabulary.
TEST_F(PrepareTokensTest, NoIdsBesideAnotherVocabularyOrIndex) {
  Write("two.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  ASSERT_TRUE(PrepareTokens(Options("two.jsonl")).ok());
  std::filesystem::remove(In("out/val.idx"));
  std::filesystem::create_directories(In("out/val.idx/taken"));
  EXPECT_FALSE(PrepareTokens(Options("two.jsonl")).ok());
  EXPECT_FALSE(std::filesystem::exists(In("out/train.bin")));
  std::filesystem::remove_all(In("out/val.idx"));
  ASSERT_TRUE(PrepareTokens(Options("two.jsonl")).ok());
  EXPECT_EQ(Read("train.bin"), "a.");
}

// The ids may be on another disk.
TEST_F(PrepareTokensTest, LinksToIdsStay) {
  Write("two.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  ASSERT_TRUE(PrepareTokens(Options("two.jsonl")).ok());
  std::filesystem::create_directories(In("disk"));
  std::filesystem::rename(In("out/train.bin"), In("disk/ids"));
  std::filesystem::create_symlink(In("disk/ids"), In("out/train.bin"));
  Write("two.jsonl", "{\"text\": \"c\"}\n{\"text\": \"d\"}\n");
  ASSERT_TRUE(PrepareTokens(Options("two.jsonl")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(In("out/train.bin")));
  EXPECT_EQ(Read("train.bin"), "c.");
}

// A vocabulary of another kind goes, but not the user's files that it links to.
TEST_F(PrepareTokensTest, LinkedVocabulariesStay) {
  Write("two.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  std::filesystem::create_directories(In("out"));
  std::filesystem::create_directories(In("models"));
  std::ofstream(In("models/tokenizer.model")) << "mine";
  std::filesystem::create_symlink(In("models/tokenizer.model"), In("out/tokenizer.model"));
  ASSERT_TRUE(PrepareTokens(Options("two.jsonl")).ok());
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(In("out/tokenizer.model"))));
  EXPECT_TRUE(std::filesystem::exists(In("models/tokenizer.model")));
}

// The same of one of the same kind: the link goes, and only once there is a corpus.
TEST_F(PrepareTokensTest, LinkedVocabulariesAreNotReplaced) {
  namespace fs = std::filesystem;
  Write("one.jsonl", "{\"text\": \"a\"}\n");
  Write("two.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  fs::create_directories(In("out"));
  fs::create_directories(In("gpt2"));
  for (const char* name : {"vocab.json", "merges.txt"}) {
    Write(absl::StrCat("gpt2/", name), "mine");
    fs::create_symlink(In(absl::StrCat("gpt2/", name)), In(absl::StrCat("out/", name)));
  }
  EXPECT_FALSE(PrepareTokens(Options("one.jsonl")).ok());
  EXPECT_TRUE(fs::is_symlink(In("out/vocab.json")));
  ASSERT_TRUE(PrepareTokens(Options("two.jsonl")).ok());
  for (const char* name : {"vocab.json", "merges.txt"}) {
    EXPECT_EQ(ReadWholeFile(In(absl::StrCat("gpt2/", name))).value_or(""), "mine");
    EXPECT_FALSE(fs::is_symlink(In(absl::StrCat("out/", name))));
    EXPECT_EQ(ReadWholeFile(In(absl::StrCat("out/", name))).value_or(""),
              ReadWholeFile(In(absl::StrCat("bpe/", name))).value_or("none"));
  }
  // A link to what is copied there stays.
  fs::remove(In("out/vocab.json"));
  fs::create_symlink(In("bpe/vocab.json"), In("out/vocab.json"));
  ASSERT_TRUE(PrepareTokens(Options("two.jsonl")).ok());
  EXPECT_TRUE(fs::is_symlink(In("out/vocab.json")));
  EXPECT_EQ(ReadWholeFile(In("bpe/vocab.json")).value_or(""), ByteVocabulary(/*with_end=*/true));
}

// At any moment: one of both corpora, or none.
TEST_F(PrepareTokensTest, ALossOfPowerLeavesNoMixture) {
  Write("first.jsonl", "{\"text\": \"abc\"}\n{\"text\": \"d\"}\n");
  Write("second.jsonl",
        "{\"text\": \"x\", \"prompt\": \"yz\"}\n{\"text\": \"v\", \"prompt\": \"\"}\n");  // as many tokens
  const auto corpus = [](const std::string& folder) {
    std::string text;
    for (const char* part : {"train", "val"}) {
      const auto file = TokenFile::Open(absl::StrCat(folder, "/", part, ".bin"));
      if (!file.ok()) return std::string();
      const absl::StatusOr<std::string> index = ReadWholeFile(absl::StrCat(folder, "/", part, ".idx"));
      for (std::int64_t i = 0; i < (*file)->tokens().size(); ++i)
        absl::StrAppend(&text, (*file)->tokens()[i], " ");
      absl::StrAppend(&text, index.value_or("no index"), " ");
    }
    for (const char* name : {"/vocab.json", "/merges.txt"})
      text += ReadWholeFile(folder + name).value_or("no vocabulary");
    return text;
  };
  const auto prepare = [&](const char* input, bool with_end) {
    Write("bpe/vocab.json", ByteVocabulary(with_end));
    Write("bpe/merges.txt", with_end ? "#version: 0.2\n" : "#version: 0.2 \n");
    TokenOptions options = Options(input);
    options.threads = 1;
    if (*input == 's') options.documents.prompt_key = "prompt";
    return PrepareTokens(options).status();
  };
  int operations = 0, states = 0;
  for (const bool with_end : {true, false}) {
    ASSERT_TRUE(prepare("first.jsonl", true).ok());
    const std::string before = corpus(In("out"));
    const auto body = [&](const base::testing::Mark& mark) {
      const absl::Status status = prepare("second.jsonl", with_end);
      mark(1);
      return status.ok();
    };
    std::set<std::string> found;
    const auto report = base::testing::LosePower(In("out"), body, [&](const std::string& after, int written) {
      const std::string left = corpus(after);
      found.insert(left);
      return std::string(written == 1 && left.empty() ? "no corpus" : "");
    });
    EXPECT_EQ(report.faults, std::vector<std::string>{});
    EXPECT_THAT(found, ::testing::IsSubsetOf({before, corpus(In("out")), std::string()}));
    operations += report.operations;
    states += report.states;
  }
  EXPECT_GT(states, 10);
  RecordProperty("operations", operations);
  RecordProperty("states", states);
}

TEST_F(PrepareTokensTest, Errors) {
  const auto error = [&](const std::string& lines) {
    Write("bad.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n" + lines);
    const absl::Status status = PrepareTokens(Options("bad.jsonl")).status();
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(std::filesystem::exists(In("out/train.bin")));
    return std::string(status.message());
  };
  const std::string at = In("bad.jsonl") + ":3: ";
  EXPECT_THAT(error("no json"), HasSubstr(at + "expected a JSON object"));
  EXPECT_THAT(error("{\"text\": \"\xFF\"}"), HasSubstr(at + "expected a JSON object"));
  for (const char* half : {R"({"text": "a\ud83d"})", R"({"text": "\uDE00 \ud83d\ude00"})"}) {
    EXPECT_THAT(error(half), HasSubstr(at + "a \\uD800 to \\uDFFF without its other half is no character"));
  }
  EXPECT_THAT(error(R"({"text": "\ud83d\ude00)"), HasSubstr(at + "expected a JSON object"));
  EXPECT_THAT(error("[1]"), HasSubstr(at + "expected a JSON object"));
  EXPECT_THAT(error(std::string(100000, '[')), HasSubstr(at + "expected a JSON object"));
  EXPECT_THAT(error("{\"texts\": \"c\"}"), HasSubstr(at + "no string \"text\" in this object"));
  EXPECT_THAT(error("{\"text\": 3}"), HasSubstr(at + "no string \"text\" in this object"));
  TokenOptions options = Options("corpus");
  EXPECT_THAT(std::string(PrepareTokens(options).status().message()),
              HasSubstr("no *.txt, *.jsonl or *.json"));
  Write("one.txt", "one");
  options = Options("one.txt");
  EXPECT_THAT(std::string(PrepareTokens(options).status().message()),
              HasSubstr("1 documents for training and 0 for validation, a share of 0.5"));
  options.validation_share = 1;
  EXPECT_THAT(std::string(PrepareTokens(options).status().message()),
              HasSubstr("validation_share=1: expected a share between 0 and 1"));
  EXPECT_EQ(PrepareTokens(Options("none")).status().code(), absl::StatusCode::kNotFound);
  Write("table.parquet", "PAR1 and so on");
  EXPECT_THAT(std::string(PrepareTokens(Options("table.parquet")).status().message()),
              HasSubstr("table.parquet: a Parquet file; expected text"));
}

// A folder can be opened as a file, but not read.
TEST_F(PrepareTokensTest, StandardInputThatCannotBeRead) {
  ASSERT_NE(std::freopen(folder_.c_str(), "r", stdin), nullptr);
  TokenOptions options = Options("");
  options.input = "-";
  const absl::Status status = PrepareTokens(options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("standard input: cannot be read"));
  EXPECT_FALSE(std::filesystem::exists(In("out/train.bin")));
  ASSERT_NE(std::freopen("/dev/null", "r", stdin), nullptr);
  std::cin.clear();
}

}  // namespace
}  // namespace plait::data
