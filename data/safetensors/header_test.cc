#include "data/safetensors/header.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/seed.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plait::data::safetensors {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A tensor of four bytes at `begin`, as another program may write it.
std::string Bytes4(const std::string& name, int begin) {
  return absl::StrCat("\"", name, R"(":{"dtype":"U8","shape":[2,2],"data_offsets":[)", begin, ",", begin + 4,
                      "]}");
}

TEST(Header, TensorsMayStandInAnyOrder) {
  const auto header = ParseHeader(absl::StrCat("{", Bytes4("b", 4), ",\n ", Bytes4("a", 0), "}   "), 8);
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->entries.size(), 2u);
  EXPECT_EQ(header->entries[0].name, "a");
  EXPECT_EQ(header->entries[1].begin, 4);
  EXPECT_EQ(header->entries[1].end, 8);
  EXPECT_EQ(header->entries[1].info, (TensorInfo{DType::kU8, {2, 2}}));
}

TEST(Header, ScalarsAndEmptyTensors) {
  const auto header = ParseHeader(R"({"none":{"dtype":"F64","shape":[3,0],"data_offsets":[8,8]},
      "scalar":{"data_offsets":[0,8],"shape":[],"dtype":"I64"},
      "before":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                                  8);
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->entries.size(), 3u);
  EXPECT_EQ(header->entries[0].name, "before");
  EXPECT_EQ(header->entries[1].info, (TensorInfo{DType::kI64, {}}));
  EXPECT_EQ(header->entries[2].begin, 8);
}

TEST(Header, MetadataAndEscapes) {
  const auto header = ParseHeader(R"({"__metadata__":{"format":"pt","\u00e9\n":"\"x\""},"t":
      {"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})",
                                  2);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->metadata, (Metadata{{"format", "pt"}, {"\u00e9\n", "\"x\""}}));
}

TEST(Header, WritesWhatItReads) {
  Header header = {.metadata = {{"format", "pt"}, {"a\"b", "\u00e9\n"}}, .entries = {}};
  header.entries = {{"x\\", {DType::kBF16, {3, 2}}, 0, 12}, {"\u4e2d", {DType::kBool, {}}, 12, 13}};
  const auto text = HeaderText(header);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->size() % 8, 0u);
  EXPECT_THAT(*text, HasSubstr(R"("x\\":{"dtype":"BF16","shape":[3,2],"data_offsets":[0,12]})"));
  const auto again = ParseHeader(*text, 13);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->metadata, header.metadata);
  ASSERT_EQ(again->entries.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(again->entries[i].name, header.entries[i].name);
    EXPECT_EQ(again->entries[i].info, header.entries[i].info);
  }
}

TEST(Header, NamesThatCannotBeWritten) {
  const auto refused = [](const std::string& first, const std::string& second) {
    Header header;
    header.entries = {{first, {DType::kU8, {1}}, 0, 1}, {second, {DType::kU8, {1}}, 1, 2}};
    return std::string(HeaderText(header).status().message());
  };
  EXPECT_EQ(refused("w", "w"), R"(the name "w" is given twice, expected every name once)");
  EXPECT_THAT(refused("w", "__metadata__"), HasSubstr("is the format's own"));
  EXPECT_EQ(refused("w", "\xff\n"), R"("\377\n" is not UTF-8: safetensors cannot hold it)");
  EXPECT_EQ(
      HeaderText({.metadata = {{"note", std::string(kMaxHeaderBytes, 'x')}}, .entries = {}}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

struct Refused {
  std::string header;
  std::int64_t data_bytes;
  std::string message;
};

std::vector<Refused> RefusedHeaders() {
  const std::string tensor = R"("t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const auto changed = [&](const std::string& from, const std::string& to) {
    return "{" + absl::StrReplaceAll(tensor, {{from, to}}) + "}";
  };
  return {
      {"", 0, "the header does not begin with '{', expected a JSON object: not safetensors?"},
      {" {}", 0, "the header does not begin with '{', expected a JSON object: not safetensors?"},
      {"[]", 0, "the header does not begin with '{', expected a JSON object: not safetensors?"},
      {"{]", 0, "the header is not JSON at its byte 2, expected a JSON object in UTF-8"},
      {"{} x", 0, "the header is not JSON at its byte 4, expected a JSON object in UTF-8"},
      {std::string("{}\0{}", 5), 0,
       "the header is not JSON at its byte 3, a zero, expected a JSON object in UTF-8"},
      {"{\"\xff\":{}}", 0, "the header is not JSON at its byte 3, expected a JSON object in UTF-8"},
      {"{\"t\":3}", 0, R"("t" is a number, expected a JSON object)"},
      {"{\"t\":null}", 0, R"("t" is null, expected a JSON object)"},
      {"{\"t\":{}}", 0, R"(tensor "t" is incomplete, expected dtype, shape and data_offsets)"},
      {changed("F32", "F31"), 8,
       "tensor \"t\": unknown dtype \"F31\", expected one of BOOL, U8, I8, F8_E5M2, F8_E4M3, I16, U16, F16, "
       "BF16, I32, "
       "U32, F32, F64, I64, U64"},
      {changed("\"F32\"", "32"), 8, R"(tensor "t": dtype is a number, expected a string)"},
      {changed("[2]", "2"), 8, R"(tensor "t": shape is a number, expected a list of numbers)"},
      {changed("[2]", "[-2]"), 8,
       R"(tensor "t": shape is a negative number, expected integers from 0 to 2^63 - 1)"},
      {changed("[2]", "[2.0]"), 8,
       R"(tensor "t": shape is no 64-bit integer, expected integers from 0 to 2^63 - 1)"},
      {changed("[2]", "[[2]]"), 8, R"(tensor "t": shape is a list, expected integers from 0 to 2^63 - 1)"},
      {changed("[2]", "[9223372036854775808]"), 8,
       R"(tensor "t": shape is a number beyond 2^63 - 1, expected integers from 0 to 2^63 - 1)"},
      {changed("[2]", "[4294967296,4294967296]"), 8,
       R"(tensor "t": F32 [4294967296, 4294967296] has more than 2^63 - 1 bytes)"},
      {changed("[2]", "[1]"), 8, R"(tensor "t": data_offsets [0, 8], expected 4 bytes for F32 [1])"},
      {changed("[2]", "[3]"), 8, R"(tensor "t": data_offsets [0, 8], expected 12 bytes for F32 [3])"},
      {changed("[0,8]", "[8,0]"), 8, R"(tensor "t": data_offsets [8, 0], expected 8 bytes for F32 [2])"},
      {changed("[0,8]", "[0,8,8]"), 8, R"(tensor "t": data_offsets has 3 numbers, expected begin and end)"},
      {changed("[0,8]", "[4,12]"), 12,
       R"(tensor "t": data_offsets [4, 12] leave a hole, expected to begin at 0)"},
      {changed("\"shape\"", "\"size\""), 8,
       R"(tensor "t" has the key "size", expected dtype, shape and data_offsets only)"},
      {changed("\"shape\"", "\"dtype\""), 8, R"("t" has the key "dtype" twice, expected every key once)"},
      {"{" + tensor + "," + tensor + "}", 8, R"(duplicate name "t")"},
      {"{" + Bytes4("a", 0) + "," + Bytes4("b", 2) + "}", 6,
       R"(tensor "b": data_offsets [2, 6] overlap another tensor, expected to begin at 4)"},
      {"{" + Bytes4("a", 0) + "," + Bytes4("b", 0) + "}", 4,
       R"(tensor "b": data_offsets [0, 4] overlap another tensor, expected to begin at 4)"},
      {"{" + tensor + "}", 7, "7 bytes of data, expected 8: the file is cut short"},
      {"{" + tensor + "}", 9, "9 bytes of data, expected 8"},
      {R"({"__metadata__":{"a":1}})", 0, R"(__metadata__ "a" is a number, expected a string)"},
      {R"({"__metadata__":["a"]})", 0, R"("__metadata__" is a list, expected a JSON object)"},
  };
}

TEST(Header, EachFaultHasItsLine) {
  for (const Refused& refused : RefusedHeaders()) {
    const absl::Status status = ParseHeader(refused.header, refused.data_bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << refused.header;
    // Which of two that begin alike comes first, nobody says.
    if (absl::StrReplaceAll(refused.message, {{"\"b\"", "\"a\""}}) == status.message()) continue;
    EXPECT_EQ(status.message(), refused.message) << refused.header;
  }
}

TEST(Header, MessagesAreOneShortLineWhateverTheNames) {
  const std::string name = std::string(5000, 'x') + "\\n\\u0007";
  const absl::Status status = ParseHeader("{\"a\\nb" + name + "\":7}", 0).status();
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  EXPECT_LT(status.message().size(), 300u);
}

TEST(Header, NestingCostsNoMemory) {
  std::string deep = "{\"t\":{\"shape\":";
  deep.append(5'000'000, '[');
  EXPECT_THAT(std::string(ParseHeader(deep, 0).status().message()), HasSubstr("shape is a list"));
}

// One to four changes of a good header: bytes overwritten, taken out, put in, pieces copied elsewhere.
std::string Damaged(const std::string& good, base::RandomStream& random) {
  static constexpr char kTelling[] = "{}[]\",:0123456789-.eE\\u \n\0\xff";
  std::string text = good;
  for (std::uint64_t change = 0; change <= random.Below(4); ++change) {
    const std::uint64_t at = random.Below(text.size());
    const char letter = kTelling[random.Below(sizeof(kTelling))];
    switch (random.Below(4)) {
      case 0:
        text[at] = letter;
        break;
      case 1:
        text.insert(at, 1, letter);
        break;
      case 2:
        if (text.size() > 30) text.erase(at, 1 + random.Below(20));
        break;
      default:
        text.insert(random.Below(text.size()), text.substr(at, 1 + random.Below(20)));
    }
  }
  return text;
}

// What may be relied on: tensors side by side, of the size that shape and type say.
void ExpectSound(const Header& header, std::int64_t data_bytes, const std::string& text) {
  std::int64_t reached = 0;
  for (const Header::Entry& entry : header.entries) {
    std::int64_t elements = 1;
    for (const std::int64_t length : entry.info.shape) elements *= length;
    ASSERT_EQ(entry.begin, reached) << text;
    ASSERT_EQ(entry.end, reached + elements * ElementBytes(entry.info.dtype)) << text;
    reached = entry.end;
  }
  ASSERT_EQ(reached, data_bytes) << text;
}

TEST(Header, DamagedHeadersAreErrorsOrSound) {
  const std::string good =
      R"({"__metadata__":{"format":"pt"},"h.0.w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("h.0.b":{"dtype":"F16","shape":[3],"data_offsets":[24,30]},"n":{"dtype":"BOOL","shape":[],"data_offsets":[30,31]}} )";
  ASSERT_TRUE(ParseHeader(good, 31).ok());
  base::RandomStream random(base::DeriveSeed(1, "damaged headers"));
  int accepted = 0, refused = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string text = Damaged(good, random);
    const auto header = ParseHeader(text, 31);
    if (!header.ok()) {
      ++refused;
      ASSERT_EQ(header.status().code(), absl::StatusCode::kDataLoss) << text;
      ASSERT_EQ(header.status().message().find('\n'), absl::string_view::npos) << text;
      continue;
    }
    ++accepted;
    ASSERT_NO_FATAL_FAILURE(ExpectSound(*header, 31, text));
  }
  // Both happen: a changed letter of a name does no harm.
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 100'000);
}

}  // namespace
}  // namespace plait::data::safetensors
