// The sweep on real ranks: everything right is found right, everything planted is found and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/host_name.h"
#include "comm/testing/world.h"
#include "data/hdf5/file.h"
#include "tools/collectives_sweep/pairs.h"
#include "tools/collectives_sweep/run_sweep.h"
#include "tools/collectives_sweep/sweep.h"

namespace plait::collectives_sweep {
namespace {

namespace fs = std::filesystem;
using comm::ReduceOp;
using comm::testing::World;
using ::testing::HasSubstr;

// Times are not looked at: one call each will do.
SweepOptions Quick() {
  SweepOptions options;
  options.largest_bytes = 4096;
  options.factor = 16;
  options.repetitions = 2;
  options.repetition_seconds = 0;
  options.pairs = false;
  return options;
}

Sweep Measure(const SweepOptions& options) {
  return MeasureCollectives(World(), options, [](const Sweep&, const Row&) {});
}

TEST(Collectives, AreRightInAllGroups) {
  const Sweep sweep = Measure(Quick());
  EXPECT_TRUE(sweep.verdict.ok()) << sweep.verdict;
  // 9 operations of sizes 8, 128, 2048, 4096, and the barrier.
  EXPECT_EQ(sweep.rows.size(), sweep.groups.size() * 37);
  for (const Row& row : sweep.rows) {
    EXPECT_EQ(row.wrong, 0);
    EXPECT_GT(row.seconds.least, 0);
    EXPECT_LE(row.seconds.least, row.seconds.median);
    EXPECT_LE(row.seconds.median, row.seconds.greatest);
  }
}

TEST(Collectives, GroupsDivideTheWorld) {
  const std::vector<SweepGroup> groups = DefaultGroups(World());
  EXPECT_EQ(groups.size(), World().size() >= 4 ? 3 : 1);
  EXPECT_EQ(groups[0].ranks.size(), World().size());
  if (World().size() == 4) {
    EXPECT_EQ(groups[1].ranks.size(), 2);
    EXPECT_EQ(groups[1].ranks.rank(), World().rank() % 2);
    EXPECT_EQ(groups[2].ranks.rank(), World().rank() / 2);
  }
}

// The world's rank that receives something in a call with root 0 and can be lied to.
int Victim(Swept operation) {
  const bool root_alone = operation == Swept::kReduce || operation == Swept::kGather;
  return root_alone ? 0 : World().size() - 1;
}

TEST(Collectives, OneWrongElementOnOneRankIsFoundAndNamed) {
  for (const Swept operation : AllSwept()) {
    if (operation == Swept::kBarrier) continue;
    SweepOptions options = Quick();
    options.operations = {Swept::kBroadcast, operation, Swept::kAllGather};
    options.groups = {{"world", World()}};
    options.factor = 512;
    int calls = 0;
    options.faults.after_call = [&](Swept now, comm::Buffer result) {
      if (now != operation || World().rank() != Victim(operation) || ++calls != 4) return;
      static_cast<float*>(result.data)[7] += 1;  // of the second size, after its times were taken
    };
    const Sweep sweep = Measure(options);
    EXPECT_EQ(sweep.verdict.code(), absl::StatusCode::kDataLoss) << Name(operation);
    const std::string message(sweep.verdict.message());
    EXPECT_TRUE(absl::StartsWith(
        message, absl::StrCat("rank ", Victim(operation), " (", base::HostName(),
                              ") received a wrong result of ", Name(operation), "[world] f32[")))
        << message;
    EXPECT_THAT(message, HasSubstr(": element 7 of "));
    std::int64_t wrong = 0;
    for (const Row& row : sweep.rows) {
      if (row.wrong > 0) {
        EXPECT_EQ(row.operation, operation);
      }
      wrong += row.wrong;
    }
    EXPECT_EQ(wrong, 1);
  }
}

TEST(Collectives, TheMessageSaysWhatWasExpected) {
  SweepOptions options = Quick();
  options.operations = {Swept::kAllReduce};
  options.groups = {{"world", World()}};
  options.smallest_bytes = options.largest_bytes = 64;
  bool first = true;
  options.faults.after_call = [&](Swept, comm::Buffer result) {
    if (World().rank() == 0 && first) static_cast<float*>(result.data)[3] = -5;
    first = false;
  };
  // Element 3 of the first call: (3 + 7) % 61 + 1 = 11 on rank 0, one more on each further rank.
  const int n = World().size(), expected = 11 * n + n * (n - 1) / 2;
  EXPECT_EQ(Measure(options).verdict.message(),
            absl::StrCat("rank 0 (", base::HostName(),
                         ") received a wrong result of all_reduce[world] f32[16] sum: ",
                         "element 3 of 16: expected ", expected, ", found -5"));
}

TEST(Options, ThatCannotBeAreNamed) {
  const auto message = [](const std::function<void(SweepOptions&)>& change) {
    SweepOptions options = Quick();
    change(options);
    const absl::Status status = RunSweep(World(), options, [](const std::string&) {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message([](SweepOptions& o) { o.factor = 1; }), "sweep: factor 1; expected 2 or more");
  EXPECT_EQ(message([](SweepOptions& o) { o.smallest_bytes = 8192; }),
            "sweep: sizes from 8192 to 4096 bytes; expected 1 <= smallest <= largest");
}

// Options with a clock of the test's, on which a message takes 0.5 ms, and 2 ms more where `delayed(from,
// to)`: more than a turn of the scheduler, which does not count where ranks share cores. Each rank's clock
// advances by a round trip with each of its messages: that is what it sees of the partner.
class PairsOnTestClock {
 public:
  using Delayed = std::function<bool(int from, int to)>;
  explicit PairsOnTestClock(Delayed delayed) : delayed_(std::move(delayed)), options_(Quick()) {
    options_.pair_messages = 10;
    options_.pair_passes = 2;
    options_.pair_bytes = 4096;
    options_.faults.now = [this] { return now_; };
    options_.faults.before_message = [this](int partner) {
      const int self = World().rank();
      now_ += 2 * kMessage + (delayed_(self, partner) ? kDelay : 0) + (delayed_(partner, self) ? kDelay : 0);
    };
  }
  SweepOptions& options() { return options_; }
  std::vector<std::string> Slow() { return SlowParts(MeasurePairs(World(), options_), options_.slow_ratio); }

  static constexpr double kMessage = 0.5e-3;

 private:
  static constexpr double kDelay = 2e-3;
  Delayed delayed_;
  SweepOptions options_;
  double now_ = 0;
};

TEST(Pairs, ASlowRankIsNamed) {
  PairsOnTestClock pairs([](int from, int) { return from == 2; });
  const std::vector<std::string> slow = pairs.Slow();
  if (World().size() < 3) {
    EXPECT_EQ(slow, std::vector<std::string>());
    return;
  }
  // 3 ms a round trip for 1.
  EXPECT_EQ(slow,
            std::vector<std::string>{absl::StrCat("rank 2 (", base::HostName(),
                                                  ") is slow: 3.0x the median latency with every partner")});
}

TEST(Pairs, ASlowLinkIsNamed) {
  const int last = World().size() - 1;
  PairsOnTestClock pairs(
      [&](int from, int to) { return std::min(from, to) == 1 && std::max(from, to) == last; });
  const std::vector<std::string> slow = pairs.Slow();
  if (World().size() < 3) {
    EXPECT_EQ(slow, std::vector<std::string>());
    return;
  }
  EXPECT_EQ(slow, std::vector<std::string>{absl::StrCat("the link of ranks 1 (", base::HostName(), ") and ",
                                                        last, " (", base::HostName(),
                                                        ") is slow: 5.0x the median latency")});
}

// Ten messages of rank 0's first round, all short ones to one partner, are late.
TEST(Pairs, WhatPassesIsNotNamed) {
  int messages = 0;
  PairsOnTestClock pairs(
      [&](int from, int) { return from == World().rank() && from == 0 && ++messages <= 10; });
  EXPECT_EQ(pairs.Slow(), std::vector<std::string>());
  if (World().size() < 3) return;
  messages = 0;
  pairs.options().pair_passes = 1;
  std::int64_t named[1] = {static_cast<std::int64_t>(pairs.Slow().size())};
  World().AllReduce(comm::BufferOf(absl::MakeSpan(named)), ReduceOp::kMax);
  EXPECT_EQ(named[0], 1) << "it would be named by one pass alone";
}

TEST(Pairs, TimesAreHalfTheShortestRoundTrip) {
  int messages = 0;
  PairsOnTestClock pairs([&](int from, int) { return from == World().rank() && ++messages % 10 != 4; });
  const PairMatrix matrix = MeasurePairs(World(), pairs.options());
  for (int a = 0; a < World().size(); ++a) {
    for (int b = 0; b < World().size(); ++b) {
      // The clock is below 1 s: its readings are rounded to 2^-53.
      EXPECT_NEAR(matrix.latency(a, b), a == b ? 0 : pairs.kMessage, 0x1p-52);
      EXPECT_NEAR(matrix.seconds(a, b), a == b ? 0 : pairs.kMessage, 0x1p-52);
    }
  }
}

TEST(Pairs, TheMatrixIsSymmetricAndTheSameOnAllRanks) {
  SweepOptions options = Quick();
  options.pair_bytes = 4096;
  options.pair_messages = 3;
  const PairMatrix matrix = MeasurePairs(World(), options);
  const int n = World().size();
  ASSERT_EQ(matrix.short_seconds.size(), n * n);
  for (int a = 0; a < n; ++a) {
    EXPECT_EQ(matrix.latency(a, a), 0);
    for (int b = 0; b < n; ++b) {
      EXPECT_EQ(matrix.latency(a, b), matrix.latency(b, a));
      if (a != b) {
        EXPECT_GT(matrix.seconds(a, b), 0);
      }
    }
  }
  std::vector<double> least = matrix.short_seconds, greatest = matrix.short_seconds;
  World().AllReduce(comm::BufferOf(absl::MakeSpan(least)), ReduceOp::kMin);
  World().AllReduce(comm::BufferOf(absl::MakeSpan(greatest)), ReduceOp::kMax);
  EXPECT_EQ(least, greatest);
}

class Run : public ::testing::Test {
 protected:
  Run() : folder_(absl::StrCat(::testing::TempDir(), "/sweep_", World().size())) {
    if (World().rank() == 0) {
      fs::remove_all(folder_);
      fs::create_directories(folder_);
    }
    World().Barrier();
  }
  absl::Status Sweep(const SweepOptions& options) {
    return RunSweep(World(), options, [&](const std::string& line) { lines_.push_back(line); },
                    {{"program", "test"}});
  }
  std::string folder_;
  std::vector<std::string> lines_;
};

TEST_F(Run, PrintsSavesAndDraws) {
  SweepOptions options = Quick();
  options.pairs = true;
  options.pair_bytes = 4096;
  options.file = folder_ + "/sweep.h5";
  options.plots_folder = folder_ + "/plots";
  options.show_plots = true;
  const absl::Status status = Sweep(options);
  EXPECT_TRUE(status.ok()) << status;
  const std::string text = absl::StrJoin(lines_, "\n");
  EXPECT_EQ(text.empty(), World().rank() != 0);
  if (World().rank() != 0) return;
  for (const Swept operation : AllSwept())
    EXPECT_THAT(text, HasSubstr(absl::StrCat("# ", Name(operation), ", group world of ")));
  EXPECT_THAT(text, HasSubstr("results saved in " + options.file));
  EXPECT_THAT(text, HasSubstr("time of collectives, group world\ntime"));
  EXPECT_TRUE(fs::exists(folder_ + "/plots/pngs/time_world.png"));
  EXPECT_EQ(fs::exists(folder_ + "/plots/svgs/bandwidth_halves.svg"), World().size() >= 4);
  const auto file = data::File::Open(options.file);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto sizes = data::ReadArray<std::int64_t>(*file, "/size").value();
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{8, 128, 2048, 4096}));
  const std::int64_t groups = World().size() >= 4 ? 3 : 1;
  EXPECT_EQ(data::ArrayShape(*file, "/bus_bandwidth").value(), (std::vector<std::int64_t>{10, groups, 4}));
  const auto bytes = data::ReadArray<double>(*file, "/bytes").value();
  EXPECT_EQ(bytes[3], 4096);  // all_reduce of the world, the last size
  const auto time = data::ReadArray<double>(*file, "/time").value();
  const auto bandwidth = data::ReadArray<double>(*file, "/algorithm_bandwidth").value();
  EXPECT_DOUBLE_EQ(bandwidth[3], 4096 / time[3]);
  EXPECT_EQ(data::TextAttribute(*file, "/", "ranks").value(), std::to_string(World().size()));
  EXPECT_EQ(file->Has("/pair_latency"), World().size() > 1);
}

TEST_F(Run, AWrongResultEndsItWithAnErrorOnAllRanks) {
  SweepOptions options = Quick();
  options.groups = {{"world", World()}};
  options.faults.after_call = [](Swept operation, comm::Buffer result) {
    if (operation == Swept::kScatter && World().rank() == World().size() - 1)
      static_cast<float*>(result.data)[0] += 2;
  };
  const absl::Status status = Sweep(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("scatter[world]"));
  if (World().rank() != 0) return;
  EXPECT_THAT(absl::StrJoin(lines_, "\n"), HasSubstr(absl::StrCat("# ", status.message())));
  EXPECT_THAT(lines_.back(), HasSubstr("none    none    -1"));  // the barrier: it went on to the end
}

TEST_F(Run, AFileThatCannotBeWrittenIsAnErrorOnAllRanks) {
  SweepOptions options = Quick();
  options.operations = {Swept::kBarrier};
  options.file = folder_ + "/absent/sweep.h5";
  const absl::Status status = Sweep(options);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("absent"));
}

TEST_F(Run, GoesOnWithoutGnuplot) {
  const std::string path = getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  SweepOptions options = Quick();
  options.operations = {Swept::kAllReduce};
  options.plots_folder = folder_ + "/plots";
  const absl::Status status = Sweep(options);
  setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(status.ok()) << status;
  if (World().rank() != 0) return;
  EXPECT_THAT(lines_.back(), HasSubstr("gnuplot-nox"));
}

}  // namespace
}  // namespace plait::collectives_sweep
