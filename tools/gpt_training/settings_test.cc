// Presets, meshes, and what cannot work.
#include "tools/gpt_training/settings.h"
#include "absl/strings/str_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace plait::gpt_training {
namespace {

using ::testing::HasSubstr;

absl::Status Choose(const std::string& name, GptSettings& settings) {
  training::SettingsTable table;
  settings.Bind(table);
  settings.preset = name;
  return settings.ChooseDefaults(table);
}

GptSettings Preset(const std::string& name) {
  GptSettings settings;
  EXPECT_TRUE(Choose(name, settings).ok()) << name;
  return settings;
}

absl::Status Check(const GptSettings& settings, int ranks) {
  const auto axes = settings.Axes(ranks);
  return axes.ok() ? settings.Check(*axes) : axes.status();
}

std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }

// Parameters of a GPT of this size without biases and without the position embedding, from the widths alone:
// token embedding (tied with the head), per block 12 C^2 and two norms, the last norm.
std::int64_t Parameters(const GptSettings& c, std::int64_t vocabulary) {
  return vocabulary * c.n_embd + c.n_layer * (12 * c.n_embd * c.n_embd + 2 * c.n_embd) + c.n_embd;
}

TEST(PresetTest, HaveThePublishedSizes) {
  // 85.00M is what the published run prints for 12/12/768 on 65 characters.
  EXPECT_EQ(Parameters(Preset("gpt2"), 65), 85003776);
  EXPECT_EQ(Preset("gpt2").batch_size * Preset("gpt2").sequence * 4, 262144);  // on four ranks
  EXPECT_EQ(Preset("gpt2").TokensPerStep(4), 262144);
  const std::vector<std::pair<const char*, std::vector<std::int64_t>>> sizes = {
      {"shakespeare-cpu", {4, 4, 128}}, {"shakespeare", {6, 6, 384}}, {"gpt2-medium", {24, 16, 1024}},
      {"gpt2_large", {36, 20, 1280}},   {"gpt2-xl", {48, 25, 1600}},  {"llama2B", {10, 32, 4096}},
      {"llama7B", {32, 32, 4096}}};
  for (const auto& [name, size] : sizes) {
    const GptSettings c = Preset(name);
    EXPECT_EQ((std::vector<std::int64_t>{c.n_layer, c.n_head, c.n_embd}), size) << name;
    EXPECT_TRUE(Check(c, 2).ok()) << Check(c, 2);
  }
  GptSettings settings;
  EXPECT_THAT(ErrorOf(Choose("gpt3", settings)), HasSubstr("--preset=gpt3: expected one of shakespeare"));
}

TEST(PresetTest, TheDefaultIsTheFirst) {
  // Two places say it: the members of GptSettings, and the table of presets.
  const GptSettings preset = Preset("shakespeare-cpu"), config;
  EXPECT_EQ(preset.preset, config.preset);
  EXPECT_EQ(preset.n_embd, config.n_embd);
  EXPECT_EQ(preset.sequence, config.sequence);
  EXPECT_EQ(preset.batch_size, config.batch_size);
}

TEST(CheckTest, NamesTheFlag) {
  const auto error = [](void (*spoil)(GptSettings&)) {
    GptSettings config;
    spoil(config);
    return ErrorOf(Check(config, 2));
  };
  EXPECT_EQ(error([](GptSettings&) {}), "");
  EXPECT_THAT(error([](GptSettings& c) { c.n_head = 3; }),
              HasSubstr("--n-embd=128: must be a multiple of --n-head=3"));
  EXPECT_THAT(error([](GptSettings& c) { c.dropout = 1; }), HasSubstr("--dropout=1: must be"));
  EXPECT_THAT(error([](GptSettings& c) { c.dtype = "half"; }), HasSubstr("--dtype=half: expected float32"));
  EXPECT_THAT(error([](GptSettings& c) { c.strategy = "zero4"; }),
              HasSubstr("--strategy=zero4: expected ddp"));
  EXPECT_THAT(error([](GptSettings& c) { c.global_batch_size = 1; }), HasSubstr("one sample for each"));
  EXPECT_THAT(error([](GptSettings& c) { c.optimizer.min_lr = 1; }),
              HasSubstr("--min-lr=1: must be at most"));
  EXPECT_THAT(error([](GptSettings& c) { c.init_from = "resume"; }), HasSubstr("expected --resume=DIR"));
  EXPECT_THAT(error([](GptSettings& c) { c.checkpoint_interval = 5; }), HasSubstr("--checkpoint-dir"));
}

TEST(CheckTest, SequenceParallelismNeedsAMultiple) {
  const auto error = [](std::int64_t sequence, const std::string& mesh, const std::string& attention = "ring",
                        std::int64_t sample_tokens = 0) {
    GptSettings config;
    config.sequence_parallel = true;
    config.sample_tokens = sample_tokens;
    config.sequence = sequence;
    config.mesh = mesh;
    config.context_attention = attention;
    return ErrorOf(Check(config, 4));
  };
  EXPECT_EQ(error(16, "tp=4"), "");
  EXPECT_EQ(error(15, "tp=1,dp_replicate=4"), "");
  EXPECT_EQ(error(16, "dp_replicate=4"), "--sequence-parallel: expected tp in --mesh");
  EXPECT_EQ(error(18, "tp=4"),
            "--block-size=18: 18 tokens for the 4 ranks of tp; --sequence-parallel needs a multiple");
  // Padded to 20: two of four chunks on each rank; or to 18, of which each rank has 9.
  EXPECT_EQ(error(17, "cp=2,tp=2"), "");
  EXPECT_EQ(error(17, "cp=2,tp=2", "ulysses"),
            "--block-size=17: 9 tokens on each rank of cp for the 2 ranks of tp; --sequence-parallel needs a "
            "multiple");
  // Sampling has whole sequences.
  EXPECT_EQ(error(16, "cp=2,tp=2", "ring", 1), "");
  EXPECT_EQ(error(17, "cp=2,tp=2", "ring", 1),
            "--block-size=17: 17 tokens in samples (--sample-tokens=0: none), which cp does not split, for "
            "the 2 ranks "
            "of tp; --sequence-parallel needs a multiple");
}

TEST(EvaluationTest, EverySoManyStepsAndAtTheEnd) {
  GptSettings config;
  config.eval_interval = 4;
  config.max_iters = 10;
  std::vector<int> evaluated;
  for (int step = 0; step <= 10; ++step) {
    if (config.EvaluatesAt(step)) evaluated.push_back(step);
  }
  EXPECT_EQ(evaluated, (std::vector<int>{0, 4, 8, 10}));
  config.eval_interval = 0;
  EXPECT_FALSE(config.EvaluatesAt(10));
}

struct Started {
  GptSettings settings;
  training::SettingsTable table;
  explicit Started(const std::vector<std::string>& arguments) {
    settings.Bind(table);
    EXPECT_TRUE(base::ParseFlags(arguments, table.Usage("t", "", {})).ok());
    EXPECT_TRUE(settings.ChooseDefaults(table).ok());
  }
  // As resume.cc.
  absl::Status Adopt(const training::NamedValues& kept) {
    std::vector<std::string> changes;
    absl::Status status = table.AdoptPresets(kept);
    if (status.ok()) status = settings.ChooseDefaults(table);
    return status.ok() ? table.Adopt(kept, &changes) : status;
  }
};

// "--min_lr=6e-05" of the preset would be a flag without effect here, and refused.
TEST(FlagFile, HasThePresetAndWhatDiffersFromIt) {
  const Started first({"--preset=gpt2", "--lr-decay-iters=0", "--n-layer=4"});
  EXPECT_TRUE(Check(first.settings, 2).ok()) << Check(first.settings, 2);
  const std::string lines = "--preset=gpt2\n--n-layer=4\n--lr-decay-iters=0\n";
  EXPECT_EQ(first.table.FlagFile({}), lines + "--decay-lr=true\n");  // which --lr-decay-iters implies
  Started resumed({});
  ASSERT_TRUE(resumed.Adopt(first.table.Kept()).ok());
  EXPECT_EQ(resumed.settings.n_layer, 4);
  EXPECT_EQ(resumed.settings.n_head, 12);
  EXPECT_EQ(resumed.table.FlagFile({}), lines + "--decay-lr=true\n");
}

// A value that is a flag's default here may be another's implication where the file is read.
TEST(FlagFile, HasWhatTheResumedRunsWereGiven) {
  const Started first({"--decay-lr", "--warmup-iters=10", "--lr-decay-iters=100"});
  Started second({"--no-decay-lr"});
  ASSERT_TRUE(second.Adopt(first.table.Kept()).ok());
  Started third({});
  ASSERT_TRUE(third.Adopt(second.table.Kept()).ok());
  EXPECT_FALSE(third.settings.optimizer.decay_lr);
  std::vector<std::string> lines = absl::StrSplit(third.table.FlagFile({}), '\n', absl::SkipEmpty());
  EXPECT_FALSE(Started(lines).settings.optimizer.decay_lr);
}

// Flags of a schedule that is no longer used would be refused there.
TEST(FlagFile, OfARunWithAnotherScheduleCanBeRead) {
  const Started first({"--lr-schedule=wsd", "--lr-decay-fraction=0.1", "--lr-decay-iters=100"});
  Started second({"--lr-schedule=cosine"});
  ASSERT_TRUE(second.Adopt(first.table.Kept()).ok());
  const std::vector<std::string> lines = absl::StrSplit(second.table.FlagFile({}), '\n', absl::SkipEmpty());
  const Started again(lines);
  EXPECT_TRUE(again.settings.CheckGiven(again.table).ok()) << again.settings.CheckGiven(again.table);
  EXPECT_TRUE(Check(again.settings, 2).ok()) << Check(again.settings, 2);
  EXPECT_EQ(again.settings.optimizer.lr_schedule, "cosine");
}

TEST(PresetTest, OfAResumedRunIsTheCheckpoints) {
  EXPECT_EQ(Started({"--preset=gpt2"}).Adopt(Started({}).table.Kept()).message(),
            "preset is shakespeare-cpu there and gpt2 here");
  // Checkpoints of earlier versions have none, nor have those that follow.
  training::NamedValues kept = Started({"--preset=gpt2"}).table.Kept();
  kept.erase("preset");
  Started resumed({});
  ASSERT_TRUE(resumed.Adopt(kept).ok());
  EXPECT_EQ(resumed.table.Kept().count("preset"), 0u);
  EXPECT_TRUE(Started({"--preset=gpt2"}).Adopt(resumed.table.Kept()).ok());
}

}  // namespace
}  // namespace plait::gpt_training
