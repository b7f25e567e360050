// The published model, and what cannot work.
#include "tools/llama_training/settings.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "base/flags.h"
#include "models/llama/llama.h"

namespace plait::llama_training {
namespace {

TEST(LlamaSettings, BeginWithThePublishedModel) {
  const LlamaSettings settings;
  const auto options = std::get<llama::LlamaOptions>(settings.Options(settings.vocab_size));
  EXPECT_EQ(llama::ParameterCount(options), 33599744);
  EXPECT_EQ(options.max_seq_len, 128);
  EXPECT_EQ(settings.GlobalBatch(12), 192);
}

std::string ErrorOf(void (*spoil)(LlamaSettings&)) {
  LlamaSettings settings;
  spoil(settings);
  const auto axes = settings.Axes(2);
  return std::string((axes.ok() ? settings.Check(*axes) : axes.status()).message());
}

TEST(LlamaSettings, NamesTheFlag) {
  EXPECT_EQ(ErrorOf([](LlamaSettings&) {}), "");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.n_heads = 24; }),
            "--dim=256: must be a multiple of 2 x --n-heads=24, so that heads have an even width");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.n_heads = 256; }),
            "--dim=256: must be a multiple of 2 x --n-heads=256, so that heads have an even width");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.n_kv_heads = 5; }), "--n-kv-heads=5: must divide --n-heads=32");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.n_layers = 0; }), "--n-layers=0: must be at least 1");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.sequence = 0; }), "--seq-length=0: must be at least 1");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.vocab_size = 0; }), "--vocab-size=0: must be at least 1");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.vocab_size = 0, s.data = "input.txt"; }), "");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.optimizer.learning_rate = -1; }),
            "--lr=-1: must be a positive number");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.optimizer.min_lr = 1; }),
            "--min-lr=1: must be at most --lr=0.003");
  EXPECT_EQ(ErrorOf([](LlamaSettings& s) { s.rope_theta = 0; }), "--rope-theta=0: must be a positive number");
}

// The rate before the first step, over the maximum.
double BeginOf(const std::vector<std::string>& flags) {
  LlamaSettings settings;
  training::SettingsTable table;
  settings.Bind(table);
  EXPECT_TRUE(base::ParseFlags(flags, table.Usage("train_llama", "", {})).ok());
  EXPECT_TRUE(settings.ChooseDefaults(table).ok());
  return settings.optimizer.Schedule().At(0) / settings.optimizer.learning_rate;
}

// So that --eval-only repeats an estimate of training.
TEST(LlamaSettings, EstimatesOfAResumedRunAreThoseOfTheRun) {
  LlamaSettings first, resumed;
  training::SettingsTable kept, table;
  first.Bind(kept);
  resumed.Bind(table);
  ASSERT_TRUE(
      base::ParseFlags({"--eval-iters=3", "--eval-interval=5"}, kept.Usage("train_llama", "", {})).ok());
  std::vector<std::string> changes;
  ASSERT_TRUE(table.Adopt(kept.Kept(), &changes).ok());
  EXPECT_EQ(resumed.eval_iters, 3);
  EXPECT_EQ(resumed.eval_interval, 5);
}

TEST(LlamaSettings, AFlagOfTheScheduleSwitchesItOn) {
  EXPECT_EQ(BeginOf({}), 1);
  EXPECT_LT(BeginOf({"--warmup-iters=1000"}), 0.01);
  EXPECT_LT(BeginOf({"--decay-lr", "--warmup-iters=1000"}), 0.01);
  EXPECT_EQ(BeginOf({"--no-decay-lr", "--warmup-iters=1000"}), 1);
}

}  // namespace
}  // namespace plait::llama_training
