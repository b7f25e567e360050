#include "base/flags.h"

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>

#include "absl/flags/reflection.h"
#include "base/flag_value.h"
#include "base/nearest_word.h"
#include "gtest/gtest.h"

struct Cell {
  std::string name;
};
bool AbslParseFlag(absl::string_view text, Cell* cell, std::string* error) {
  cell->name = std::string(text);
  if (text == "implicit" || text == "classic") return true;
  *error = "expected implicit or classic";
  return false;
}
std::string AbslUnparseFlag(const Cell& cell) { return cell.name; }

ABSL_FLAG(int, lp_levels, 3, "levels of the time grid");
ABSL_FLAG(int, lp_cfactor, 4, "coarsening factor");
ABSL_FLAG(bool, use_sgd, false, "plain gradient descent");
ABSL_FLAG(bool, normalize, true, "scale the input to unit variance");
ABSL_FLAG(double, lr, 0.001, "learning rate");
ABSL_FLAG(float, tf, 128, "final time");
ABSL_FLAG(std::uint64_t, seed, 1, "seed of all random numbers");
ABSL_FLAG(std::string, data_dir, "", "folder");
ABSL_FLAG(Cell, gru, Cell{"implicit"}, "cell");

namespace plait::base {
namespace {

const ToolUsage kUsage = {
    .name = "train",
    .summary = "Trains.",
    .examples = {"train --lp-levels 3"},
    .groups = {{"Solver", {"seed", "lp_levels", "tf"}}, {"Optimizer", {"use_sgd", "lr", "data_dir", "gru"}}}};

class FlagsTest : public testing::Test {
 protected:
  // "" for kRun, "help" for kHelp, else the error.
  static std::string Parse(const std::vector<std::string>& arguments) {
    const absl::StatusOr<Request> request = ParseFlags(arguments, kUsage);
    if (!request.ok()) return std::string(request.status().message());
    return *request == Request::kHelp ? "help" : "";
  }

  absl::FlagSaver restore_afterwards_;
};

TEST_F(FlagsTest, DashesUnderscoresEqualsAndBlanks) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--lp-levels", "7"},
                                             {"--lp-levels=7"},
                                             {"--lp_levels", "7"},
                                             {"--lp_levels=7"},
                                             {"--lp-levels=2", "--lp_levels=7"}}) {
    absl::SetFlag(&FLAGS_lp_levels, 3);
    EXPECT_EQ(Parse(arguments), "");
    EXPECT_EQ(absl::GetFlag(FLAGS_lp_levels), 7);
  }
}

TEST_F(FlagsTest, Booleans) {
  for (const char* yes : {"--use-sgd", "--use_sgd=true", "--use-sgd=1"}) {
    absl::SetFlag(&FLAGS_use_sgd, false);
    EXPECT_EQ(Parse({yes}), "");
    EXPECT_TRUE(absl::GetFlag(FLAGS_use_sgd)) << yes;
  }
  for (const char* no : {"--nouse-sgd", "--no-use-sgd", "--nouse_sgd", "--use-sgd=false"}) {
    absl::SetFlag(&FLAGS_use_sgd, true);
    EXPECT_EQ(Parse({no}), "");
    EXPECT_FALSE(absl::GetFlag(FLAGS_use_sgd)) << no;
  }
  // A flag whose own name begins with "no" is not a negation.
  EXPECT_EQ(Parse({"--nonormalize"}), "");
  EXPECT_FALSE(absl::GetFlag(FLAGS_normalize));
  EXPECT_EQ(Parse({"--normalize"}), "");
  EXPECT_TRUE(absl::GetFlag(FLAGS_normalize));
  EXPECT_EQ(Parse({"--nouse-sgd=true"}), "--nouse-sgd takes no value");
}

TEST_F(FlagsTest, BooleanDoesNotEatTheNextArgument) {
  EXPECT_EQ(Parse({"--use-sgd", "false"}), "unexpected argument 'false'; write --use-sgd=false");
  EXPECT_EQ(Parse({"--use-sgd", "--lp-levels", "5"}), "");
  EXPECT_EQ(absl::GetFlag(FLAGS_lp_levels), 5);
}

TEST_F(FlagsTest, NegativeNumbersAndWholeSeeds) {
  EXPECT_EQ(Parse({"--lr", "-2.5e-3", "--lp-levels", "-4", "--seed", "18446744073709551615"}), "");
  EXPECT_EQ(absl::GetFlag(FLAGS_lr), -2.5e-3);
  EXPECT_EQ(absl::GetFlag(FLAGS_lp_levels), -4);
  EXPECT_EQ(absl::GetFlag(FLAGS_seed), std::numeric_limits<std::uint64_t>::max());
}

TEST_F(FlagsTest, TextValuesMayHoldAnything) {
  EXPECT_EQ(Parse({"--data-dir", "-a=b c"}), "");
  EXPECT_EQ(absl::GetFlag(FLAGS_data_dir), "-a=b c");
  EXPECT_EQ(Parse({"--data-dir=x=y"}), "");
  EXPECT_EQ(absl::GetFlag(FLAGS_data_dir), "x=y");
  EXPECT_EQ(Parse({"--data-dir="}), "");
  EXPECT_EQ(absl::GetFlag(FLAGS_data_dir), "");
}

TEST_F(FlagsTest, UnknownFlagSuggestsTheNearest) {
  EXPECT_EQ(Parse({"--lp-level", "3"}),
            "unknown flag --lp-level; did you mean --lp-levels? (--help lists all)");
  EXPECT_EQ(Parse({"--levels=3"}), "unknown flag --levels; did you mean --lp-levels? (--help lists all)");
  EXPECT_EQ(Parse({"--sede=3"}), "unknown flag --sede; did you mean --seed? (--help lists all)");
  EXPECT_EQ(Parse({"--hepl"}), "unknown flag --hepl; did you mean --help? (--help lists all)");
}

TEST_F(FlagsTest, AbseilsOwnFlagsAreUnknown) {
  for (const char* flag : {"--undefok=y", "--fromenv=z", "--helpfull"}) {
    EXPECT_EQ(Parse({flag}).substr(0, 15), "unknown flag --") << flag;
  }
}

std::string WriteFile(const std::string& lines) {
  const std::string path = testing::TempDir() + "/run.flags";
  std::ofstream(path) << lines;
  return path;
}

TEST_F(FlagsTest, AFlagFileStandsForItsLines) {
  const std::string path = WriteFile(
      "# a run\n\n--lp-levels=5\n  --use-sgd  \r\n--no-normalize\n--data-dir=\"a\\n b \"\n--lr=2e-4");
  EXPECT_EQ(Parse({"--lp-levels=2", "--flagfile=" + path}), "");
  EXPECT_EQ(absl::GetFlag(FLAGS_lp_levels), 5);
  EXPECT_TRUE(absl::GetFlag(FLAGS_use_sgd));
  EXPECT_FALSE(absl::GetFlag(FLAGS_normalize));
  EXPECT_EQ(absl::GetFlag(FLAGS_data_dir), "a\n b ");
  EXPECT_EQ(absl::GetFlag(FLAGS_lr), 2e-4);
  EXPECT_EQ(Parse({"--flagfile", path, "--lp-levels=7"}), "");
  EXPECT_EQ(absl::GetFlag(FLAGS_lp_levels), 7);
}

TEST_F(FlagsTest, AFlagFileThatIsWrongIsNamedWithItsLine) {
  const auto error = [&](const std::string& lines) {
    const std::string path = WriteFile(lines), shown = Parse({"--flagfile=" + path});
    const std::string begin = "--flagfile=" + path + ": ";
    return shown.substr(0, begin.size()) == begin ? shown.substr(begin.size()) : "?" + shown;
  };
  EXPECT_EQ(error("--lr=1\n--lp-level=3"),
            "line 2: unknown flag --lp-level; did you mean --lp-levels? (--help lists all)");
  EXPECT_EQ(error("lr=1"), "line 1: 'lr=1': expected --flag=value");
  EXPECT_EQ(error("--lr 1"), "line 1: unknown flag --lr 1; did you mean --lr? (--help lists all)");
  EXPECT_EQ(error("--lr=\"1\\n2\""), "line 1: --lr=1\\n2: expected a number");
  EXPECT_EQ(error("--data-dir=\"\\q\""), "line 1: '--data-dir=\"\\q\"': invalid C escape sequence");
  EXPECT_EQ(
      error("--flagfile=x"),
      "line 1: --flagfile=x: --flagfile inside a flag file is not supported; give it on the command line");
  EXPECT_EQ(Parse({"--flagfile=/none"}),
            "--flagfile=/none: cannot be read; expected a file with a flag per line");
  EXPECT_EQ(Parse({"--flagfile"}), "--flagfile needs a value, such as --flagfile=settings.flags");
  // Ranks that a program starts could not read a pipe again.
  for (const std::string path : {"/", "/dev/zero"}) {
    EXPECT_EQ(Parse({"--flagfile=" + path}),
              "--flagfile=" + path + ": expected a regular file, which can be read again");
  }
}

TEST_F(FlagsTest, AFlagFileHasAtMostAMebibyte) {
  const std::string flag = "--lp-levels=6\n", most = flag + std::string((1 << 20) - flag.size(), '\n');
  EXPECT_EQ(Parse({"--flagfile=" + WriteFile(most)}), "");
  EXPECT_EQ(absl::GetFlag(FLAGS_lp_levels), 6);
  const std::string larger = WriteFile(most + "\n");
  EXPECT_EQ(Parse({"--flagfile=" + larger}),
            "--flagfile=" + larger + ": has more than 1048576 bytes; expected a file with a flag per line");
}

TEST_F(FlagsTest, LinesReadBackAsTheSameValue) {
  const std::string texts[] = {"",    "\n",           " a",          "b\t",    "\"q\"",
                               "x=y", "# no comment", "back\\slash", "\u00e9", "\""};
  for (const std::string& text : texts) {
    std::string written = text, read = "other";
    double number = 0.1 + 0.2, number_read = 0;
    std::vector<int> list = {4, 2}, list_read;
    std::string lines;
    for (const BoundFlag& flag :
         {BoundFlag{"a_text", &written, ""}, {"number", &number, ""}, {"list", &list, ""}})
      lines += FlagLine(flag) + "\n";
    std::vector<BoundFlag> bound = {
        {"a_text", &read, ""}, {"number", &number_read, ""}, {"list", &list_read, ""}};
    const ToolUsage usage = {.name = "train", .summary = "Trains.", .bound = &bound};
    const std::string path = WriteFile(lines);
    EXPECT_TRUE(ParseFlags({"--flagfile=" + path}, usage).ok()) << lines;
    EXPECT_EQ(read, text) << lines;
    EXPECT_EQ(number_read, number);
    EXPECT_EQ(list_read, list);
  }
}

TEST_F(FlagsTest, BadValuesSayWhatWasExpected) {
  EXPECT_EQ(Parse({"--lp-levels=three"}), "--lp-levels=three: expected an integer up to 2147483647");
  EXPECT_EQ(Parse({"--lp-levels=3.5"}), "--lp-levels=3.5: expected an integer up to 2147483647");
  EXPECT_EQ(Parse({"--seed=-1"}), "--seed=-1: expected an integer from 0 to 18446744073709551615");
  EXPECT_EQ(Parse({"--seed=18446744073709551616"}),
            "--seed=18446744073709551616: expected an integer from 0 to 18446744073709551615");
  EXPECT_EQ(Parse({"--lr=fast"}), "--lr=fast: expected a number");
  EXPECT_EQ(Parse({"--use-sgd=maybe"}), "--use-sgd=maybe: expected true or false");
  EXPECT_EQ(Parse({"--gru=quick"}), "--gru=quick: expected implicit or classic");
}

TEST_F(FlagsTest, MissingValuesAndLeftovers) {
  EXPECT_EQ(Parse({"--lp-levels"}), "--lp-levels needs a value, such as --lp-levels=3");
  EXPECT_EQ(Parse({"--lp-levels", "--lp-cfactor", "4"}), "--lp-levels needs a value, such as --lp-levels=3");
  for (const char* leftover : {"extra", "-lr", "-", ""}) {
    EXPECT_EQ(Parse({leftover}), "unexpected argument '" + std::string(leftover) +
                                     "'; settings are given as --flag=value (--help lists all)");
  }
}

TEST_F(FlagsTest, PositionalArgumentsWhereTheToolTakesThem) {
  ToolUsage usage = kUsage;
  usage.positional = "RUN.h5 [OTHER.h5 ...]";
  const auto parsed = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> files;
    const absl::StatusOr<Request> request = ParseFlags(arguments, usage, &files);
    return request.ok() ? files : std::vector<std::string>{std::string(request.status().message())};
  };
  using Files = std::vector<std::string>;
  EXPECT_EQ(parsed({"a.h5", "--lp-levels", "5", "b.h5"}), (Files{"a.h5", "b.h5"}));
  EXPECT_EQ(absl::GetFlag(FLAGS_lp_levels), 5);
  EXPECT_EQ(parsed({"--use-sgd", "a.h5"}), Files{"a.h5"}) << "no value of the flag before it";
  EXPECT_EQ(parsed({"a.h5", "--", "--b.h5", "-c", "--help"}), (Files{"a.h5", "--b.h5", "-c", "--help"}));
  EXPECT_EQ(parsed({}), Files{});
  EXPECT_EQ(parsed({"--use-sgd", "false"}), Files{"unexpected argument 'false'; write --use-sgd=false"});
  for (const std::string wrong : {"-lr", "-", ""}) {
    EXPECT_EQ(parsed({"a.h5", wrong}), Files{"unexpected argument '" + wrong +
                                             "'; settings are given as --flag=value (--help lists all)"});
  }
  EXPECT_NE(
      HelpText(usage).find("\nUsage: train [--flagfile=FILE] [--flag=value ...] RUN.h5 [OTHER.h5 ...]\n"),
      std::string::npos);
  EXPECT_DEATH(ParseFlags({}, usage).IgnoreError(), "nobody asks for it");
}

TEST_F(FlagsTest, MainReturnsPositionalArguments) {
  ToolUsage usage = kUsage;
  usage.positional = "FILE";
  std::vector<std::string> arguments = {"train", "x", "--lr=1"};
  std::vector<char*> argv = {arguments[0].data(), arguments[1].data(), arguments[2].data()};
  EXPECT_EQ(ParseFlagsOrExit(3, argv.data(), usage), std::vector<std::string>{"x"});
}

TEST_F(FlagsTest, HelpShowsOurFlagsByGroup) {
  EXPECT_EQ(Parse({"--help"}), "help");
  EXPECT_EQ(Parse({"--lr=1", "-h"}), "help");
  const std::string help = HelpText(kUsage);
  EXPECT_EQ(help.find("train: Trains.\n\nUsage: train [--flagfile=FILE] [--flag=value ...]\n\nExamples:\n  "
                      "train --lp-levels 3\n\n"
                      "Solver:\n  --seed                      seed of all random numbers (default: 1)\n"),
            0u);
  EXPECT_NE(help.find("\n  --[no]use-sgd               plain gradient descent (default: false)\n"),
            std::string::npos);
  EXPECT_NE(help.find("\nOther:\n  --lp-cfactor "), std::string::npos);
  EXPECT_EQ(help.find("undefok"), std::string::npos);
}

TEST_F(FlagsTest, HelpFitsItsColumns) {
  ToolUsage usage = kUsage;
  for (int i = 0; i < 60; ++i) usage.summary += " word";
  const std::string help = HelpText(usage);
  std::size_t start = 0;
  for (std::size_t end; (end = help.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(end - start, 100u) << help.substr(start, end - start);
  }
}

TEST_F(FlagsTest, SettingsAreShownAsPythonDoes) {
  EXPECT_EQ(Parse({"--seed=3649905550453979348", "--data-dir=a 'b'"}), "");
  EXPECT_EQ(Settings(kUsage),
            "Namespace(seed=3649905550453979348, lp_levels=3, tf=128.0, use_sgd=False, lr=0.001, "
            "data_dir=\"a 'b'\", gru='implicit', lp_cfactor=4, normalize=True)");
}

TEST_F(FlagsTest, MainExitsWithOneLine) {
  std::vector<std::string> arguments = {"train", "--lp-level=3"};
  std::vector<char*> argv = {arguments[0].data(), arguments[1].data()};
  EXPECT_EXIT(ParseFlagsOrExit(2, argv.data(), kUsage), testing::ExitedWithCode(2),
              "^train: unknown flag --lp-level; did you mean --lp-levels\\? \\(--help lists all\\)\n$");
  EXPECT_EXIT(ParseFlagsOrExit(2, argv.data(), kUsage, /*rank=*/1), testing::ExitedWithCode(2), "^$");
}

TEST_F(FlagsTest, HelpShowsDefaultsNotGivenValues) {
  int levels = 3;
  std::vector<BoundFlag> bound = {{"levels", &levels, "levels of the grid"}};
  const ToolUsage usage = {.name = "t", .summary = "", .bound = &bound};
  std::vector<std::string> arguments = {"t", "--levels=5", "--help"};
  std::vector<char*> argv = {arguments[0].data(), arguments[1].data(), arguments[2].data()};
  const auto help_on_stderr = [&] {
    dup2(2, 1);
    ParseFlagsOrExit(3, argv.data(), usage);
  };
  EXPECT_EXIT(help_on_stderr(), testing::ExitedWithCode(0), "levels of the grid \\(default: 3\\)");
}

TEST_F(FlagsTest, GroupMustNameExistingFlags) {
  const ToolUsage wrong = {.name = "t", .summary = "", .examples = {}, .groups = {{"Solver", {"lp_lvls"}}}};
  EXPECT_DEATH(HelpText(wrong), "names --lp_lvls");
}

TEST(BoundFlags, SetMembersOfAStruct) {
  struct {
    int levels = 3;
    bool sgd = false;
    double tf = 128;
    std::vector<int> factors = {4};
    std::string text = "a";
    std::uint64_t seed = 7;
  } s;
  std::vector<BoundFlag> flags = {{"levels", &s.levels, "levels of the grid"},
                                  {"use_sgd", &s.sgd, "sgd", /*old_name=*/"sgd"},
                                  {"tf", &s.tf, "time"},
                                  {"factors", &s.factors, "factors"},
                                  {"text", &s.text, "text"},
                                  {"seed", &s.seed, "seed"}};
  const ToolUsage usage = {
      .name = "t", .summary = "", .groups = {{"All", {"levels", "use_sgd", "factors"}}}, .bound = &flags};
  EXPECT_NE(HelpText(usage).find("--levels"), std::string::npos);
  EXPECT_NE(HelpText(usage).find("(default: 3)"), std::string::npos);
  ASSERT_TRUE(ParseFlags({"--levels", "5", "--sgd", "--factors=4,2", "--tf=1.5"}, usage).ok());
  EXPECT_EQ(s.levels, 5);
  EXPECT_TRUE(s.sgd && flags[1].given && flags[1].old_name_given);
  EXPECT_EQ(s.factors, (std::vector<int>{4, 2}));
  EXPECT_EQ(s.tf, 1.5);
  EXPECT_FALSE(flags[5].given);
  EXPECT_EQ(Settings(usage).substr(0, 49), "Namespace(levels=5, use_sgd=True, factors=[4,2], ");
  EXPECT_EQ(ParseFlags({"--factors=4,x"}, usage).status().message(),
            "--factors=4,x: expected an integer, or a list such as 4,2");
  EXPECT_EQ(s.factors, (std::vector<int>{4, 2}));
  EXPECT_EQ(ParseFlags({"--seed=-1"}, usage).status().message(),
            "--seed=-1: expected an integer from 0 to 18446744073709551615");
  EXPECT_EQ(ParseFlags({"--level=4"}, usage).status().message(),
            "unknown flag --level; did you mean --levels? (--help lists all)");
}

// Left column: what Python's repr() prints.
TEST(PythonFloatTest, MatchesRepr) {
  EXPECT_EQ(internal::PythonFloat(0.1), "0.1");
  EXPECT_EQ(internal::PythonFloat(0.0), "0.0");
  EXPECT_EQ(internal::PythonFloat(-3.0), "-3.0");
  EXPECT_EQ(internal::PythonFloat(0.0001), "0.0001");
  EXPECT_EQ(internal::PythonFloat(0.00001), "1e-05");
  EXPECT_EQ(internal::PythonFloat(1e15), "1000000000000000.0");
  EXPECT_EQ(internal::PythonFloat(1e16), "1e+16");
  EXPECT_EQ(internal::PythonFloat(1.5e300), "1.5e+300");
  EXPECT_EQ(internal::PythonFloat(0.1f), "0.1");
  EXPECT_EQ(internal::PythonFloat(-INFINITY), "-inf");
}

TEST(NearestWordTest, EditDistance) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("seed", "sede"), 1);
  EXPECT_EQ(EditDistance("ca", "abc"), 3);  // 2 only where a swapped pair may be edited again
}

TEST(NearestWordTest, ContainedWordsAreNear) {
  EXPECT_EQ(NearestWord("batch", {"match_all", "batch_size"}), "batch_size");
  EXPECT_EQ(NearestWord("lp", {"help", "fp"}), "fp");
}

}  // namespace
}  // namespace plait::base
