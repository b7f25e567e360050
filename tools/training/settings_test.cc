// Which settings a checkpoint keeps, and what a resumed run does with them; flags of the optimizer.
#include "tools/training/settings.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_join.h"
#include "tools/training/optimizer_settings.h"

namespace plait::training {
namespace {

struct TestSettings final : Settings {
  std::int64_t n_head = 4;
  double lr = 0.1;
  void Bind(SettingsTable& table) override {
    table.Group("Model");
    table.Add("n_head", &n_head, "attention heads per layer", OnResume::kSame);
    table.Add("lr", &lr, "learning rate", OnResume::kAdopt);
    BindBatch(table, "samples");
    BindParallel(table);
    BindFiles(table, "steps");
  }
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override { return CheckShared(axes); }
};

struct Parsed {
  TestSettings settings;
  SettingsTable table;
  explicit Parsed(const std::vector<std::string>& arguments) {
    settings.Bind(table);
    EXPECT_TRUE(base::ParseFlags(arguments, table.Usage("t", "", {})).ok());
  }
  std::string ErrorOn(int ranks) {
    const auto axes = settings.Axes(ranks);
    return std::string((axes.ok() ? settings.Check(*axes) : axes.status()).message());
  }
};

TEST(Settings, AResumedRunTakesWhatWasNotGiven) {
  const NamedValues kept =
      Parsed({"--n-head=2", "--lr=0.3", "--seed=9", "--dtype=float64", "--outputs=x", "--device=cuda"})
          .table.Kept();
  EXPECT_EQ(kept.count("outputs"), 0u);
  EXPECT_EQ(kept.count("device"), 0u);
  Parsed resumed({});
  std::vector<std::string> changes;
  ASSERT_TRUE(resumed.table.Adopt(kept, &changes).ok());
  EXPECT_TRUE(changes.empty());
  EXPECT_EQ(resumed.settings.n_head, 2);
  EXPECT_EQ(resumed.settings.lr, 0.3);
  EXPECT_EQ(resumed.settings.seed, 9u);
  EXPECT_EQ(resumed.settings.dtype, "float64");
  EXPECT_EQ(resumed.settings.outputs, "");
}

TEST(Settings, WhatShapesTheModelOrTheDataMustBeTheSame) {
  const NamedValues kept = Parsed({"--n-head=2", "--seed=9"}).table.Kept();
  std::vector<std::string> changes;
  for (const auto& [flag, message] :
       {std::pair("--n-head=3", "n_head is 2 there and 3 here"),
        std::pair("--seed=1", "seed is 9 there and 1 here"),
        std::pair("--gradient-accumulation-steps=2", "gradient_accumulation_steps is 1 there and 2 here"),
        std::pair("--dtype=bfloat16", "dtype is float32 there and bfloat16 here")}) {
    EXPECT_EQ(Parsed({flag}).table.Adopt(kept, &changes).message(), message);
  }
  EXPECT_TRUE(Parsed({"--n-head=2", "--strategy=fsdp", "--nproc=3"}).table.Adopt(kept, &changes).ok());
  EXPECT_TRUE(changes.empty());
}

TEST(Settings, WhatMayChangeIsTold) {
  std::vector<std::string> changes;
  Parsed resumed({"--lr=0.5"});
  ASSERT_TRUE(resumed.table.Adopt(Parsed({}).table.Kept(), &changes).ok());
  EXPECT_EQ(absl::StrJoin(changes, ";"), "lr 0.1 -> 0.5");
  EXPECT_EQ(resumed.settings.lr, 0.5);
}

TEST(Settings, NamesTheFlagThatIsWrong) {
  const std::pair<const char*, const char*> table[] = {
      {"--batch-size=0", "--batch-size=0: must be at least 1"},
      {"--global-batch-size=1",
       "--global-batch-size=1: 2 data-parallel ranks; expected at least one sample for each"},
      {"--batch-size=9223372036854775807",
       "--batch-size=9223372036854775807: a step of 1.84467e+19 samples; expected at most 1e+12"},
      {"--dtype=int8", "--dtype=int8: expected float32 or float64 or bfloat16"},
      {"--strategy=zero4", "--strategy=zero4: expected ddp or zero1 or zero2 or fsdp"},
      {"--memory-limit=much", "--memory-limit=much: expected a size such as 8G"},
      {"--checkpoint-interval=3", "--checkpoint-interval: expected --checkpoint-dir=DIR"},
      {"--resume=auto", "--resume=auto: expected --checkpoint-dir=DIR"},
      {"--offload-params", "--offload-params: expected --offload=DIR"},
      {"--timeout=0", "--timeout=0: must be a positive number"},
      {"--device=tpu", "--device=tpu: expected auto, cpu or cuda"},
      {"--threads=0", "--threads=0: must be at least 1"}};
  for (const auto& [flag, message] : table) EXPECT_EQ(Parsed({flag}).ErrorOn(2), message);
  EXPECT_EQ(Parsed({"--offload-params", "--offload=/x", "--strategy=zero1"}).ErrorOn(2),
            "--offload-params: zero1 replicates the parameters; expected --strategy=fsdp");
  EXPECT_EQ(Parsed({"--reduce-each-micro-batch", "--strategy=zero1"}).ErrorOn(2),
            "--reduce-each-micro-batch: zero1 replicates the gradients; expected --strategy=zero2 or fsdp");
}

// A resumed run has its checkpoint's batch, on any number of ranks: --batch-size does not count then.
TEST(Settings, AFlagFileLeavesOutWhatFollowsFromOtherFlags) {
  Parsed resumed({"--n-head=2"});
  resumed.settings.global_batch_size = 8;
  resumed.settings.batch_size = 2;
  EXPECT_EQ(resumed.table.FlagFile({}, resumed.settings.DerivedFlags({})),
            "--n-head=2\n--global-batch-size=8\n");
  const Parsed given({"--batch-size=3"});
  EXPECT_EQ(given.table.FlagFile({}, given.settings.DerivedFlags({})), "--batch-size=3\n");
}

TEST(Settings, MemoryLimitIsOfARank) {
  EXPECT_EQ(Parsed({"--memory-limit=3K"}).settings.memory(2, at::kCPU).bytes, 2 * 3 * 1024);
}

TEST(OptimizerSettings, RatesOfEachSchedule) {
  OptimizerSettings optimizer = {
      .learning_rate = 1, .min_lr = 0.5, .warmup_iters = 10, .lr_decay_iters = 110};
  const auto rate = [&](std::int64_t step) { return optimizer.Schedule().At(step); };
  EXPECT_DOUBLE_EQ(rate(0), 1.0 / 11);
  EXPECT_DOUBLE_EQ(rate(35), 0.5 + 0.25 * (1 + std::sqrt(0.5)));  // a quarter of half a cosine
  optimizer.lr_schedule = "linear";
  EXPECT_DOUBLE_EQ(rate(35), 0.875);
  optimizer.lr_schedule = "wsd";
  optimizer.lr_decay_fraction = 0.4;  // the last 44 steps
  EXPECT_EQ(rate(66), 1);
  EXPECT_DOUBLE_EQ(rate(77), 0.75);  // 1 - sqrt(1 / 4) of the way is left
  EXPECT_EQ(rate(110), 0.5);
  optimizer.lr_decay_iters = 0;
  EXPECT_DOUBLE_EQ(rate(0), 1.0 / 11);
  EXPECT_EQ(rate(1000), 1);
  optimizer.decay_lr = false;
  EXPECT_EQ(rate(0), 1);
}

// The run that is resumed had a constant rate.
TEST(OptimizerSettings, AFlagOfTheScheduleSwitchesItOnInAResumedRunToo) {
  const auto resumed = [](const std::vector<std::string>& arguments, std::vector<std::string>* changes) {
    OptimizerSettings optimizer = {.learning_rate = 1, .decay_lr = false};
    SettingsTable table;
    optimizer.Bind(table);
    const NamedValues kept = table.Kept();
    EXPECT_TRUE(base::ParseFlags(arguments, table.Usage("t", "", {})).ok());
    EXPECT_TRUE(optimizer.ChooseDefaults(table).ok());
    EXPECT_TRUE(table.Adopt(kept, changes).ok());
    return optimizer;
  };
  std::vector<std::string> changes;
  const OptimizerSettings decays = resumed({"--lr-schedule=linear", "--lr-decay-iters=200"}, &changes);
  EXPECT_TRUE(decays.Check().ok());
  EXPECT_DOUBLE_EQ(decays.Schedule().At(100), 0.5);
  EXPECT_EQ(absl::StrJoin(changes, ", "),
            "lr_schedule cosine -> linear, lr_decay_iters 0 -> 200, decay_lr false -> true");
  EXPECT_EQ(
      resumed({"--lr-decay-iters=9", "--warmup-iters=10"}, &changes).Check().message(),
      "--lr-decay-iters=9: the learning rate rises for --warmup-iters=10 steps; expected at least as many, "
      "or a shorter warm-up");
  EXPECT_EQ(resumed({"--min-lr=0.1"}, &changes).Check().message(),
            "--min-lr: the learning rate does not decay; expected --lr-decay-iters=N");
  EXPECT_DOUBLE_EQ(resumed({"--no-decay-lr", "--lr-decay-iters=200"}, &changes).Schedule().At(100), 1);
}

TEST(OptimizerSettings, NamesTheFlagThatIsWrong) {
  const auto error = [](const OptimizerSettings& optimizer) {
    return std::string(optimizer.Check().message());
  };
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(error({.lr_schedule = "step"}), "--lr-schedule=step: expected cosine or linear or wsd");
  EXPECT_EQ(error({.lr_decay_fraction = 2}), "--lr-decay-fraction=2: expected 0 to 1");
  EXPECT_EQ(error({.learning_rate = 1, .min_lr = 2, .learning_rate_flag = "lr"}),
            "--min-lr=2: must be at most --lr=1");
}

}  // namespace
}  // namespace plait::training
