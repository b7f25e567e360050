// The line of a step against numbers computed by hand, and the published line's shape.
#include "tools/gpt_training/step_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace plait::gpt_training {
namespace {

using text_training::Losses, text_training::StepNumbers;

// The published step 10: 4 ranks, 64 samples of 1024 tokens each, the slowest rank's step 0.25 s.
StepNumbers Published() {
  return {.report = {.step = 10,
                     .loss = 3.15431,
                     .dt_seconds = 0.24,
                     .forward_seconds = 0.1,
                     .backward_seconds = 0.14,
                     .slowest_seconds = 0.25},
          .samples = 256,
          .tokens = 262144,
          .ranks = 4,
          .mfu_percent = 46.288281};
}

TEST(StepLineTest, CountsSamplesOfAllRanks) {
  StepNumbers step = Published();
  step.losses = Losses{.train = 4.125778, .validation = 4.128809};
  EXPECT_EQ(StepLine(step),
            "step=10 loss=3.154310 dt=0.240000 dtf=0.100000 dtb=0.140000 sps=1024.000000 "
            "sps_per_rank=256.000000 tps=1048576.000000 tps_per_rank=262144.000000 mfu=46.288281 "
            "train_loss=4.125778 val_loss=4.128809");
}

TEST(StepLineTest, NothingIsSaidThatWasNotMeasured) {
  StepNumbers step = Published();
  step.mfu_percent = std::nan("");
  EXPECT_EQ(StepLine(step),
            "step=10 loss=3.154310 dt=0.240000 dtf=0.100000 dtb=0.140000 sps=1024.000000 "
            "sps_per_rank=256.000000 tps=1048576.000000 tps_per_rank=262144.000000");
}

TEST(LegendTest, IsATable) {
  for (const bool mfu : {false, true}) {
    std::istringstream lines(TrainingLegend(/*utf8=*/false, mfu));
    std::string title, line;
    std::getline(lines, title);
    EXPECT_NE(title.find("Training Legend"), std::string::npos);
    std::size_t width = 0, rows = 0;
    for (; std::getline(lines, line); ++rows) {
      if (width == 0) width = line.size();
      EXPECT_EQ(line.size(), width) << line;
    }
    EXPECT_EQ(rows, mfu ? 16u : 15u);  // three rules, a head and a row for each word
  }
  const std::string table = TrainingLegend(/*utf8=*/true, /*with_mfu=*/true);
  EXPECT_NE(table.find("┃     abbr     ┃ desc "), std::string::npos) << table;
  EXPECT_NE(table.find("│ sps_per_rank │ Samples per second (per rank) "), std::string::npos) << table;
}

}  // namespace
}  // namespace plait::gpt_training
