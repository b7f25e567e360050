// Files written byte by byte as the formats' own programs lay them out, and ignored targets against a walk over all tokens.
#include "data/text/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/seed.h"
#include "data/hdf5/atomic_file.h"
#include "data/text/token_file_writer.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Document = std::vector<std::vector<std::int32_t>>;  // sequences

template <typename Number>
std::string Bytes(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

std::string IndexBytes(int type, std::uint64_t version, const std::vector<std::int32_t>& lengths,
                       const std::vector<std::int64_t>& pointers,
                       const std::vector<std::int64_t>& documents) {
  return std::string("MMIDIDX\0\0", 9) + Bytes<std::uint64_t>({version}) + static_cast<char>(type) +
         Bytes<std::uint64_t>({lengths.size(), documents.size()}) + Bytes(lengths) + Bytes(pointers) +
         Bytes(documents);
}

// Two documents, of two sequences and of one.
const std::string kIndex = IndexBytes(8, 1, {2, 1, 3}, {0, 4, 6}, {0, 2, 3});
const std::string kIds = Bytes<std::uint16_t>({1, 2, 3, 40000, 5, 6});

class TokenFileTest : public ::testing::Test {
 protected:
  TokenFileTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/tokens_",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  std::string Written(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(WriteWholeFile(In(name), bytes).ok());
    return In(name);
  }
  // Of ids and an index; `kind`: its code.
  std::string ErrorOf(const std::string& ids, const std::string& index) const {
    Written("a.idx", index);
    const absl::Status status = TokenFile::Open(Written("a.bin", ids)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  }

  const std::string folder_;
};

std::vector<std::int64_t> All(const Tokens& tokens) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(tokens.size()));
  tokens.Copy(0, absl::MakeSpan(ids));
  return ids;
}

TEST_F(TokenFileTest, WithoutAnIndexAsNanoGpts) {
  const auto file = TokenFile::Open(Written("train.bin", kIds));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(All((*file)->tokens()), ElementsAre(1, 2, 3, 40000, 5, 6));
  EXPECT_EQ((*file)->documents(), nullptr);
}

TEST_F(TokenFileTest, WithMegatronsIndex) {
  Written("train.idx", kIndex);
  auto file = TokenFile::Open(Written("train.bin", kIds));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->documents()->documents(), 2);
  EXPECT_EQ((*file)->documents()->sequences(), 3);
  EXPECT_THAT(All((*file)->tokens()), ElementsAre(1, 2, 3, 40000, 5, 6));
  // 32-bit ids, and modes behind the documents.
  Written("train.idx", IndexBytes(4, 1, {2, 1}, {0, 8}, {0, 1, 2}) + std::string(2, '\0'));
  file = TokenFile::Open(Written("train.bin", Bytes<std::int32_t>({7, 100000, -1})));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(All((*file)->tokens()), ElementsAre(7, 100000, -1));
}

TEST_F(TokenFileTest, AnIndexOfNoDocumentsIgnoresNothing) {
  const std::string bytes = IndexBytes(8, 1, {}, {}, {0});
  const auto index = DocumentIndex::Parse(bytes, "train.idx");
  ASSERT_TRUE(index.ok()) << index.status();
  std::vector<std::int64_t> targets = {5, 6};
  index->Ignore(IgnoredTargets::kDocuments, 0, absl::MakeSpan(targets));
  EXPECT_THAT(targets, ElementsAre(5, 6));
}

TEST_F(TokenFileTest, Damaged) {
  EXPECT_THAT(ErrorOf(kIds.substr(1), kIndex), HasSubstr("11 bytes are not a multiple of the token size 2"));
  EXPECT_THAT(ErrorOf(kIds.substr(2), kIndex), HasSubstr("5 tokens, but " + In("a.idx") + " lists 6"));
  EXPECT_THAT(ErrorOf(kIds, ""), HasSubstr("not a Megatron-LM index"));
  EXPECT_THAT(ErrorOf(kIds, "x" + kIndex), HasSubstr("not a Megatron-LM index"));
  EXPECT_THAT(ErrorOf(kIds, kIndex.substr(0, kIndex.size() - 1)),
              HasSubstr("3 sequences and 2 documents in"));
  EXPECT_THAT(ErrorOf(kIds, IndexBytes(8, 2, {6}, {0}, {0, 1})), HasSubstr("version 2 of the format"));
  EXPECT_THAT(ErrorOf(kIds, IndexBytes(5, 1, {6}, {0}, {0, 1})), HasSubstr("tokens of type 5"));
  EXPECT_THAT(ErrorOf(kIds, IndexBytes(8, 1, {2, 4}, {0, 2}, {0, 2})),
              HasSubstr("sequence 1 of 4 tokens at byte 2"));
  EXPECT_THAT(ErrorOf(kIds, IndexBytes(8, 1, {7, -1}, {0, 14}, {0, 2})),
              HasSubstr("sequence 1 of -1 tokens"));
  EXPECT_THAT(ErrorOf(kIds, IndexBytes(8, 1, {2, 4}, {0, 4}, {0, 2, 1, 2})),
              HasSubstr("document 2 at sequence 1"));
  EXPECT_THAT(ErrorOf(kIds, IndexBytes(8, 1, {2, 4}, {0, 4}, {1, 2})), HasSubstr("document 0 at sequence 1"));
  EXPECT_THAT(ErrorOf(kIds, IndexBytes(8, 1, {2, 4}, {0, 4}, {0, 1})),
              HasSubstr("document 1 at sequence 1 of 2"));
  EXPECT_THAT(ErrorOf(kIds, IndexBytes(8, 1, {6}, {0}, {})), HasSubstr("1 sequences"));
  // Counts that are larger than the file, up to sums beyond 64 bits.
  for (const std::size_t at : {18, 26}) {
    for (const std::uint64_t count :
         {std::uint64_t{1} << 20, ~std::uint64_t{0}, ~std::uint64_t{0} / 12 + 2}) {
      std::string index = kIndex;
      index.replace(at, 8, Bytes<std::uint64_t>({count}));
      EXPECT_THAT(ErrorOf(kIds, index), HasSubstr(" documents in 94 bytes"));
    }
  }
  EXPECT_EQ(TokenFile::Open(In("none.bin")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TokenFileTest, Corpora) {
  EXPECT_FALSE(IsTokenCorpus(folder_));
  Written("train.bin", kIds);
  EXPECT_TRUE(IsTokenCorpus(folder_));
  EXPECT_EQ(OpenTokenCorpus(folder_).status().code(), absl::StatusCode::kNotFound);  // no val.bin
  Written("val.bin", kIds.substr(0, 4));
  const auto corpus = OpenTokenCorpus(folder_);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_EQ(corpus->train.tokens.size(), 6);
  EXPECT_THAT(All(corpus->validation.tokens), ElementsAre(1, 2));
  // Nine tenths of 19, rounded down, are 17.
  std::vector<std::uint16_t> ids(19);
  std::iota(ids.begin(), ids.end(), std::uint16_t{0});
  const auto cut = OpenTokenCorpus(Written("one.bin", Bytes(ids)));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->train.tokens.size(), 17);
  EXPECT_THAT(All(cut->validation.tokens), ElementsAre(17, 18));
  EXPECT_EQ(cut->validation.first, 17);
}

// Documents of any number of sequences of any length, none included.
std::vector<Document> SomeDocuments(std::uint64_t seed) {
  base::RandomStream random(seed);
  std::vector<Document> documents(1 + random.Below(6));
  for (Document& document : documents) {
    document.resize(random.Below(4));
    for (auto& sequence : document) sequence.resize(random.Below(4), 1);
  }
  return documents;
}

absl::Status Write(const std::string& stem, const std::vector<Document>& documents, TokenType type) {
  auto writer = TokenFileWriter::Create(stem + ".bin", type);
  if (!writer.ok()) return writer.status();
  for (const Document& document : documents) {
    for (const auto& sequence : document) {
      const absl::Status added = writer->AddSequence(sequence);
      if (!added.ok()) return added;
    }
    writer->EndDocument();
  }
  return writer->Finish(stem + ".idx");
}

// For each token, whether it counts: said anew from the documents themselves.
std::vector<bool> Counted(const std::vector<Document>& documents, IgnoredTargets ignored) {
  std::vector<bool> counted;
  for (const Document& document : documents) {
    bool first = true;
    for (std::size_t s = 0; s < document.size(); ++s) {
      const bool prompt = ignored == IgnoredTargets::kPrompts && s + 1 < document.size();
      for (std::size_t t = 0; t < document[s].size(); ++t) {
        counted.push_back(ignored == IgnoredTargets::kNone || (!first && !prompt));
        first = false;
      }
    }
  }
  return counted;
}

TEST_F(TokenFileTest, IgnoredTargets) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<Document> documents = SomeDocuments(seed);
    const TokenType type = seed % 2 == 0 ? TokenType::kUint16 : TokenType::kInt32;
    ASSERT_TRUE(Write(In("a"), documents, type).ok());
    const auto file = TokenFile::Open(In("a.bin"));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->documents()->documents(), std::ssize(documents));
    for (const auto ignored : {IgnoredTargets::kNone, IgnoredTargets::kDocuments, IgnoredTargets::kPrompts}) {
      const std::vector<bool> counted = Counted(documents, ignored);
      const std::int64_t size = (*file)->tokens().size();
      ASSERT_EQ(std::ssize(counted), size);
      for (std::int64_t first = 0; first < size; ++first) {
        for (std::int64_t count = 1; count <= size - first; ++count) {
          std::vector<std::int64_t> targets(static_cast<std::size_t>(count), 1);
          (*file)->documents()->Ignore(ignored, first, absl::MakeSpan(targets));
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t expected = counted[static_cast<std::size_t>(first + i)] ? 1 : -100;
            ASSERT_EQ(targets[static_cast<std::size_t>(i)], expected) << seed << ": " << first << " + " << i;
          }
        }
      }
    }
  }
}

TEST_F(TokenFileTest, WrittenAsMegatronsWriterDoes) {
  const std::vector<Document> documents = {{{1, 2}, {3}}, {{40000, 5, 6}}};
  ASSERT_TRUE(Write(In("a"), documents, TokenType::kUint16).ok());
  EXPECT_EQ(*ReadWholeFile(In("a.bin")), kIds);
  EXPECT_EQ(*ReadWholeFile(In("a.idx")), kIndex);
  ASSERT_TRUE(Write(In("b"), documents, TokenType::kInt32).ok());
  EXPECT_EQ(*ReadWholeFile(In("b.bin")), Bytes<std::int32_t>({1, 2, 3, 40000, 5, 6}));
  EXPECT_EQ(*ReadWholeFile(In("b.idx")), IndexBytes(4, 1, {2, 1, 3}, {0, 8, 12}, {0, 2, 3}));
}

}  // namespace
}  // namespace plait::data
