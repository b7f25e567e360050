#include "data/text/byte_pair_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/seed.h"
#include "data/hdf5/atomic_file.h"
#include "data/testing/har_files.h"
#include "data/text/testing/test_texts.h"
#include "data/text/text_files.h"
#include "data/text/tokenizer_settings.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr int kMerges = 120;

const LearnedPairs& Learned() {
  static const LearnedPairs learned = LearnPairs(MixedText(3000), kMerges);
  return learned;
}

BytePairTokenizer LearnedTokenizer() {
  auto tokenizer = BytePairTokenizer::Parse(Learned().vocabulary, Learned().merges);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// GPT-2's own files where the machine has them.
std::optional<BytePairTokenizer> Gpt2() {
  const std::optional<std::string> folder = RealDataFolder();
  if (!folder) return std::nullopt;
  auto tokenizer = BytePairTokenizer::Load(*folder + "/gpt2-bpe");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::vector<BytePairTokenizer> Tokenizers() {
  std::vector<BytePairTokenizer> all = {LearnedTokenizer()};
  if (std::optional<BytePairTokenizer> gpt2 = Gpt2()) all.push_back(*std::move(gpt2));
  return all;
}

TEST(CharacterOfByte, AsInGpt2) {
  // OpenAI's and Hugging Face's files write a blank as U+0120 and a line's end as U+010A.
  EXPECT_EQ(CharacterOfByte(' '), 0x120);
  EXPECT_EQ(CharacterOfByte('\n'), 0x10A);
  EXPECT_EQ(CharacterOfByte(0), 0x100);
  EXPECT_EQ(CharacterOfByte('A'), 'A');
  EXPECT_EQ(CharacterOfByte(0xA0), 0x142);
  EXPECT_EQ(CharacterOfByte(0xAD), 0x143);
  EXPECT_EQ(CharacterOfByte(0xFF), 0xFF);
}

TEST(BytePairTokenizer, MergesAsThePlainAlgorithm) {
  const BytePairTokenizer tokenizer = LearnedTokenizer();
  EXPECT_EQ(tokenizer.vocabulary_size(), 256 + kMerges);
  const std::string text =
      MixedText(6000) + std::string(300, 'a') + std::string(301, ' ') + "thethethethe" + std::string(77, '.');
  std::vector<std::string> tokens;
  const std::vector<std::int32_t> ids = *tokenizer.Encode(text);
  for (const std::int32_t id : ids) tokens.push_back(*tokenizer.Decode({id}));
  EXPECT_EQ(tokens, PlainTokens(Learned(), text));
}

TEST(BytePairTokenizer, AnyBytesComeBack) {
  base::RandomStream stream(11);
  for (const BytePairTokenizer& tokenizer : Tokenizers()) {
    std::string all;
    for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
    EXPECT_EQ(*tokenizer.Decode(*tokenizer.Encode(all)), all);
    for (const int length : {0, 1, 2, 3, 17, 1000, 100000}) {
      std::string bytes(length, '\0');
      for (char& byte : bytes) byte = static_cast<char>(stream());
      EXPECT_EQ(*tokenizer.Decode(*tokenizer.Encode(bytes)), bytes)
          << tokenizer.name() << ", " << length << " bytes";
    }
    const std::string every = EveryCharacter();
    EXPECT_EQ(*tokenizer.Decode(*tokenizer.Encode(every)), every);
  }
}

// One piece of a million bytes: a quadratic merge would take hours.
TEST(BytePairTokenizer, LongPiecesEnd) {
  for (const BytePairTokenizer& tokenizer : Tokenizers()) {
    const std::string text(1000000, 'a');
    EXPECT_EQ(*tokenizer.Decode(*tokenizer.Encode(text)), text);
  }
}

// Expected ids here and below: tiktoken and tokenizers from the same two files (make_expected_tokens.py).
void ExpectManyIds(const BytePairTokenizer& tokenizer, std::size_t mixed_ids, std::uint32_t mixed_crc,
                   std::size_t every_ids, std::uint32_t every_crc) {
  const std::vector<std::int32_t> mixed = *tokenizer.Encode(MixedText());
  EXPECT_EQ(mixed.size(), mixed_ids);
  EXPECT_EQ(CrcOf(mixed), mixed_crc);
  const std::vector<std::int32_t> every = *tokenizer.Encode(EveryCharacter());
  EXPECT_EQ(every.size(), every_ids);
  EXPECT_EQ(CrcOf(every), every_crc);
}

TEST(BytePairTokenizer, IdsOfALearnedVocabulary) {
  const BytePairTokenizer tokenizer = LearnedTokenizer();
  EXPECT_THAT(*tokenizer.Encode("''''ss 's 't'd're"),
              ElementsAre(304, 304, 115, 115, 295, 115, 295, 116, 39, 100, 39, 274));
  ExpectManyIds(tokenizer, 18743, 0x905ca9cf, 1895182, 0xe94dbfa8);
}

void ExpectIdsOfGpt2(const BytePairTokenizer& gpt2) {
  EXPECT_EQ(gpt2.vocabulary_size(), 50257);
  EXPECT_EQ(gpt2.end_of_text(), 50256);
  EXPECT_EQ(*gpt2.Decode({50256}), "<|endoftext|>");
  EXPECT_THAT(*gpt2.Encode("Hello world"), ElementsAre(15496, 995));
  EXPECT_THAT(*gpt2.Encode("Hello, world! It's 2 o'clock; they'll've DON'T 'S's"),
              ElementsAre(15496, 11, 995, 0, 632, 338, 362, 267, 6, 15750, 26, 484, 1183, 1053, 23917, 6, 51,
                          705, 50, 338));
  EXPECT_THAT(*gpt2.Encode("  two  blanks  \n\n\tand tabs \r\n end   "),
              ElementsAre(220, 734, 220, 698, 2283, 220, 220, 628, 197, 392, 22524, 220, 201, 198, 886, 220,
                          220, 220));
  EXPECT_THAT(*gpt2.Encode("naïve café Ωμέγα 漢字かな 한국어 עברית العربية ١٢٣ Ⅷ ½ x²"),
              ElementsAre(2616, 38776, 40304, 7377, 102, 34703, 138, 255, 42063, 17394, 10545, 120, 95, 27764,
                          245, 27370, 26945, 220, 47991, 250, 166, 113, 255, 168, 244, 112, 14360, 95, 49603,
                          37778, 33951, 103, 28981, 44690, 26897, 39848, 22654, 45632, 18923, 94, 149, 95,
                          149, 96, 2343, 227, 100, 25208, 2124, 31185));
  EXPECT_THAT(*gpt2.Encode("<|endoftext|>"), ElementsAre(27, 91, 437, 1659, 5239, 91, 29));
}

// Without GPT-2's files the same is asked of a vocabulary learned here, in the test above.
TEST(BytePairTokenizer, IdsOfGpt2) {
  const std::optional<BytePairTokenizer> gpt2 = Gpt2();
  if (gpt2) ExpectIdsOfGpt2(*gpt2);
  if (gpt2) ExpectManyIds(*gpt2, 27097, 0xa2a4b4bc, 1858967, 0x0f08eb02);
  EXPECT_EQ(gpt2.has_value(), RealDataFolder().has_value());
}

// A text of many words, cut as for training: tiny Shakespeare in GPT-2's tokens, or what there is without the
// files. 301,966 and 36,059 are also the counts of nanoGPT's own page for this text.
TEST(BytePairTokenizer, TextForTraining) {
  const std::optional<BytePairTokenizer> gpt2 = Gpt2();
  const BytePairTokenizer tokenizer = gpt2 ? *gpt2 : LearnedTokenizer();
  const std::string text =
      gpt2 ? *ReadWholeFile(*RealDataFolder() + "/tinyshakespeare/input.txt") : DefaultText()->text;
  const std::size_t cut = text.size() * 9 / 10;  // ASCII: characters are bytes
  const std::vector<std::int32_t> train = *tokenizer.Encode(text.substr(0, cut));
  const std::vector<std::int32_t> validation = *tokenizer.Encode(text.substr(cut));
  EXPECT_EQ(*tokenizer.Decode(train) + *tokenizer.Decode(validation), text);
  EXPECT_EQ(train.size(), gpt2 ? 301966u : PlainTokens(Learned(), text.substr(0, cut)).size());
  EXPECT_EQ(validation.size(), gpt2 ? 36059u : PlainTokens(Learned(), text.substr(cut)).size());
  if (gpt2) {
    EXPECT_EQ(CrcOf(train), 0x13e1565bu);
    EXPECT_EQ(CrcOf(validation), 0x1ac8447eu);
  }
}

// An error is one line that names the file and what is wrong.
void ExpectDamage(const std::string& vocabulary, const std::string& merges, const std::string& message) {
  const absl::Status status = BytePairTokenizer::Parse(vocabulary, merges).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << message;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
}

TEST(BytePairTokenizer, DamagedFilesAreRefused) {
  const std::string& good = Learned().vocabulary;
  const std::string& merges = Learned().merges;
  const auto replaced = [&](const std::string& from, const std::string& to) {
    EXPECT_THAT(good, HasSubstr(from));
    return absl::StrReplaceAll(good, {{from, to}});
  };
  ExpectDamage("", merges, "vocab.json: expected a JSON object");
  ExpectDamage(good.substr(0, good.size() / 2), merges, "vocab.json: expected a JSON object");
  ExpectDamage("[1, 2]", merges, "vocab.json: expected a JSON object");
  ExpectDamage("{}", merges, "vocab.json: expected a JSON object");
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  ExpectDamage(replaced("\"A\":65", "\"A\":" + deep), merges, "vocab.json: expected a JSON object");
  ExpectDamage(replaced("\"A\":65", "\"A\":66"), merges, "expected each of 0..375 once");
  ExpectDamage(replaced("\"A\":65", "\"A\":\"x\\ny\""), merges, "token \"A\" has id");
  ExpectDamage(replaced("\"A\":65", "\"A\":-65"), merges, "token \"A\" has id -65");
  ExpectDamage(replaced("\"A\":65", "\"A\":1e3"), merges, "token \"A\" has id 1000.0");
  ExpectDamage(replaced("\"A\":65", "\"中\":65"), merges, "has a character that represents no byte");
  ExpectDamage(replaced("\"A\":65", "\"AA\":65"), merges, "byte 65 has no token");
  ExpectDamage(good, "#version: 0.2\nt h e\n", "merges.txt:2: expected two tokens with a blank between");
  ExpectDamage(good, "QQ QQ\n", "merges.txt:1: token \"QQ\" is not in vocab.json");
  ExpectDamage(good, merges + merges.substr(merges.find('\n') + 1), "duplicate merge");
}

TEST(BytePairTokenizer, MergesCutShortAreRefused) {
  const std::string& good = Learned().vocabulary;
  const std::string& merges = Learned().merges;
  const std::string message = "merges.txt: no merge makes token \"";
  ExpectDamage(good, "", message);
  ExpectDamage(good, "#version: 0.2\n", message);
  ExpectDamage(good, merges.substr(0, merges.find('\n', merges.size() / 2) + 1), message);
  ExpectDamage(good, merges.substr(0, merges.rfind('\n', merges.size() - 2) + 1), message);
  const auto with = [&](const std::string& token) {
    return absl::StrReplaceAll(good, {{"\"A\":65", absl::StrCat("\"A\":65,\"", token, "\":376")}});
  };
  ExpectDamage(with("QQ"), merges, message + "QQ\" of vocab.json");
  for (const char* token : {"<|endoftext|>", "<|pad|>", "<s>", "[MASK]"}) {
    const absl::Status status = BytePairTokenizer::Parse(with(token), merges).status();
    EXPECT_TRUE(status.ok()) << status;
  }
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(BytePairTokenizer, LoadTakesBothNames) {
  for (const auto& [vocabulary, merges] :
       {std::pair("vocab.json", "merges.txt"), std::pair("encoder.json", "vocab.bpe")}) {
    const std::string folder =
        absl::StrCat(::testing::TempDir(), vocabulary[0] == 'v' ? "/learned_pairs" : "/learned_pairs_openai");
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(MakeFolders(folder).ok());
    absl::Status status = BytePairTokenizer::Load(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr(folder));
    Write(absl::StrCat(folder, "/", vocabulary), Learned().vocabulary);
    status = BytePairTokenizer::Load(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(merges));
    Write(absl::StrCat(folder, "/", merges), Learned().merges);
    const auto tokenizer = BytePairTokenizer::Load(folder);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ(tokenizer->digest(), LearnedTokenizer().digest());
    EXPECT_EQ(tokenizer->end_of_text(), std::nullopt);
  }
}

// A folder with the learned vocabulary and this tokenizer.json.
absl::Status StatusBeside(const std::string& pipeline) {
  const std::string folder = ::testing::TempDir() + "/pipeline";
  EXPECT_TRUE(MakeFolders(folder).ok());
  Write(folder + "/vocab.json", Learned().vocabulary);
  Write(folder + "/merges.txt", Learned().merges);
  Write(folder + "/tokenizer.json", pipeline);
  return BytePairTokenizer::Load(folder).status();
}

std::string Pipeline(const std::string& cutter, const std::string& normalizer = "null") {
  return absl::StrCat(R"({"version": "1.0", "normalizer": )", normalizer, R"(, "pre_tokenizer": )", cutter,
                      R"(, "model": {"type": "BPE"}})");
}

TEST(BytePairTokenizer, TakesThePipelineOfGpt2) {
  for (const char* more : {"", R"(, "use_regex": true)"}) {
    const absl::Status status = StatusBeside(Pipeline(
        absl::StrCat(R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true)", more, "}")));
    EXPECT_TRUE(status.ok()) << status;
  }
  for (const char* more : {"", R"(, "post_processor": null)",
                           R"(, "post_processor": {"type": "ByteLevel", "trim_offsets": false})"}) {
    const absl::Status status =
        StatusBeside(absl::StrCat(R"({"pre_tokenizer": {"type": "ByteLevel"})", more, "}"));
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(BytePairTokenizer, OtherPipelinesAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {Pipeline("null"), "\"pre_tokenizer\" is null; expected GPT-2's"},
      {R"({"model": {}})", "\"pre_tokenizer\" is null; expected GPT-2's"},
      {Pipeline(R"("ByteLevel")"), "\"pre_tokenizer\" is \"ByteLevel\"; expected GPT-2's"},
      {Pipeline(R"({"type": "ByteLevel", "use_regex": false})"), "\"use_regex\":false}; expected GPT-2's"},
      {Pipeline(R"({"type": "ByteLevel", "use_regex": 1})"), "\"use_regex\":1}; expected GPT-2's"},
      {Pipeline(R"({"add_prefix_space": true, "type": "ByteLevel"})"),
       "\"pre_tokenizer\" is {\"add_prefix_space"},
      // As Llama 3's.
      {Pipeline(R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\n"}},
                    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})"),
       "\"pre_tokenizer\" is {\"pretokenizers\":"},
      // As GPT-NeoX's.
      {Pipeline(R"({"type": "ByteLevel"})", R"({"type": "NFC"})"),
       "\"normalizer\" is {\"type\":\"NFC\"}; expected null"},
      // <|endoftext|> in front of each text.
      {R"({"pre_tokenizer": {"type": "ByteLevel"}, "post_processor": {"type": "TemplateProcessing"}})",
       "\"post_processor\" is {\"type\":\"TemplateProcessing\"}; expected null or ByteLevel, which add no "
       "tokens: texts would get other ids than the model's"},
  };
  for (const auto& [pipeline, message] : cases) {
    const absl::Status status = StatusBeside(pipeline);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/pipeline/tokenizer.json: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  for (const std::string& damaged : {std::string(), std::string("[1]"), std::string("{"), Pipeline(deep)}) {
    const absl::Status status = StatusBeside(damaged);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("tokenizer.json: expected a JSON object"));
  }
}

TEST(BytePairTokenizer, RefusesAdditionsOfTheSettings) {
  const std::string folder = ::testing::TempDir() + "/additions",
                    settings = folder + "/tokenizer_config.json";
  ASSERT_TRUE(MakeFolders(folder).ok());
  Write(folder + "/vocab.json", Learned().vocabulary);
  Write(folder + "/merges.txt", Learned().merges);
  Write(settings, R"({"add_prefix_space": false, "add_bos_token": false, "add_eos_token": null})");
  EXPECT_TRUE(BytePairTokenizer::Load(folder).ok()) << BytePairTokenizer::Load(folder).status();
  for (const char* key : {"add_prefix_space", "add_bos_token", "add_eos_token"}) {
    Write(settings, absl::StrCat("{\"", key, "\": true}"));
    EXPECT_EQ(BytePairTokenizer::Load(folder).status(),
              absl::InvalidArgumentError(
                  absl::StrCat(settings, ": \"", key,
                               "\" is true; expected false: texts would get other ids than the model's")));
  }
}

TEST(AddedTokens, OfEveryFile) {
  const std::string folder = ::testing::TempDir() + "/added";
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(MakeFolders(folder).ok());
  EXPECT_THAT(*AddedTokens(folder), IsEmpty());
  Write(folder + "/added_tokens.json", R"({"<pad>": 376, "<sep>": 377})");
  Write(folder + "/tokenizer.json", R"({"added_tokens": [{"id": 0, "content": "!", "special": true},
                                                         {"id": 377, "content": "<sep>"}]})");
  Write(folder + "/tokenizer_config.json", R"({"added_tokens_decoder": {"378": {"content": "a\nb"}}})");
  EXPECT_THAT(*AddedTokens(folder),
              ElementsAre(Pair(0, "!"), Pair(376, "<pad>"), Pair(377, "<sep>"), Pair(378, "a\nb")));
}

TEST(AddedTokens, WhatDoesNotFitIsRefused) {
  const std::string folder = ::testing::TempDir() + "/added_badly";
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {"added_tokens.json", R"({"a\nb": -1})",
       R"("a\nb" is -1; expected a text and its id, an integer from 0)"},
      {"added_tokens.json", R"({"a": 1.0})", R"("a" is 1.0; expected)"},
      {"added_tokens.json", R"({"a": 2147483648})", R"("a" is 2147483648; expected)"},
      {"added_tokens.json", R"({"a": 18446744073709551615})", R"("a" is 18446744073709551615; expected)"},
      {"added_tokens.json", R"({"": 5})", R"("" is 5; expected)"},
      {"tokenizer.json", R"({"added_tokens": 1})", R"("added_tokens" is 1; expected a list or null)"},
      {"tokenizer.json", R"({"added_tokens": [{"id": 4}]})",
       R"("added_tokens" is {"id":4}; expected each with)"},
      {"tokenizer.json", R"({"added_tokens": ["a"]})", R"("added_tokens" is "a"; expected each with)"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": []})",
       R"("added_tokens_decoder" is []; expected an object or null)"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "a"}}})",
       R"("x" is {"content":"a"}; expected an id)"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"-1": {"content": "a"}}})", R"("-1" is)"},
      {"tokenizer_config.json", R"({"added_tokens_decoder": {"1": "a"}})", R"("1" is "a"; expected an id)"}};
  for (const auto& [file, text, message] : cases) {
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(MakeFolders(folder).ok());
    Write(absl::StrCat(folder, "/", file), text);
    const absl::Status status = AddedTokens(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(folder, "/", file, ": ", message)));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
    Write(absl::StrCat(folder, "/", file), "{");
    EXPECT_EQ(AddedTokens(folder).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(BytePairTokenizer, UnknownIdsAreRefused) {
  const BytePairTokenizer tokenizer = LearnedTokenizer();
  for (const std::int32_t id : {-1, 376, 2000000000}) {
    EXPECT_EQ(tokenizer.Decode({0, id}).status().message(),
              absl::StrCat("token ", id, " is unknown: the vocabulary is 0..375"));
  }
}

}  // namespace
}  // namespace plait::data
