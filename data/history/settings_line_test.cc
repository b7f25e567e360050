#include "data/history/settings_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Settings, AsPythonsNamespaceShowsThem) {
  EXPECT_THAT(ParseSettings("Namespace(seed=1, tf=128.0, use_sgd=False, data_dir='a b, c', hosts=['x', 'y'], "
                            "f=\"it's\", empty='')"),
              ElementsAre(Pair("seed", "1"), Pair("tf", "128.0"), Pair("use_sgd", "False"),
                          Pair("data_dir", "a b, c"), Pair("hosts", "['x', 'y']"), Pair("f", "it's"),
                          Pair("empty", "")));
}

TEST(Settings, EscapesOfPythonStrings) {
  EXPECT_THAT(ParseSettings(R"(Namespace(a='back\\', b='it\'s "x"', c='1\n2', d='\\n\d', e='\\\\\'', f=3))"),
              ElementsAre(Pair("a", "back\\"), Pair("b", "it's \"x\""), Pair("c", "1\n2"),
                          Pair("d", "\\n\\d"), Pair("e", "\\\\'"), Pair("f", "3")));
}

TEST(Settings, AsFlags) {
  EXPECT_THAT(ParseSettings("--layer-sizes=1024,512 --lr 1e-3 --compile --note='a b' --x -5 --last"),
              ElementsAre(Pair("layer_sizes", "1024,512"), Pair("lr", "1e-3"), Pair("compile", "true"),
                          Pair("note", "a b"), Pair("x", "-5"), Pair("last", "true")));
  EXPECT_THAT(ParseSettings("train.backend=DDP model.batch_size=1"),
              ElementsAre(Pair("train.backend", "DDP"), Pair("model.batch_size", "1")));
  EXPECT_THAT(ParseSettings("--lr=1 --lr=2"), ElementsAre(Pair("lr", "2"))) << "the last one counts";
}

TEST(Settings, ManyNames) {
  constexpr std::size_t kNames = 100'000;
  std::string line;
  for (std::size_t i = 0; i < 2 * kNames; ++i) absl::StrAppend(&line, "n", i % kNames, "=", i, " ");
  const NamedTexts settings = ParseSettings(line);
  ASSERT_EQ(settings.size(), kNames);
  for (std::size_t i = 0; i < kNames; ++i) {
    ASSERT_EQ(settings[i].first, absl::StrCat("n", i));
    ASSERT_EQ(settings[i].second, absl::StrCat(kNames + i)) << "the last one counts";
  }
}

TEST(Settings, OddLines) {
  EXPECT_THAT(ParseSettings(""), IsEmpty());
  EXPECT_THAT(ParseSettings("no settings at all"), IsEmpty());
  EXPECT_THAT(ParseSettings("Namespace("), IsEmpty());
  EXPECT_THAT(ParseSettings("a='unclosed, b=2"), ElementsAre(Pair("a", "'unclosed, b=2")));
  EXPECT_THAT(ParseSettings("a=1,,  b=2)"), ElementsAre(Pair("a", "1,"), Pair("b", "2)")));
  EXPECT_THAT(ParseSettings("=3 -- -"), IsEmpty());
}

}  // namespace
}  // namespace plait::data
