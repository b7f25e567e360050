#include "models/sampling/sampler.h"

#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "models/gpt/gpt.h"
#include "models/llama/llama.h"

namespace plait::sampling {
namespace {

using ::testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using ::testing::ElementsAre;

constexpr int kDraws = 20000;

at::Tensor Logits(const std::vector<double>& probabilities) {
  std::vector<double> logits;
  for (const double p : probabilities) logits.push_back(std::log(p));
  return at::tensor(logits, at::kDouble);
}

std::vector<int> Counts(const SamplingOptions& options, const at::Tensor& logits) {
  std::vector<int> counts(logits.numel());
  Sampler sampler(options);
  for (int i = 0; i < kDraws; ++i) ++counts.at(*sampler.Next(logits));
  return counts;
}

// Each share within six standard deviations of a binomial distribution; never what has none.
void ExpectShares(const SamplingOptions& options, const at::Tensor& logits,
                  const std::vector<double>& shares) {
  const std::vector<int> counts = Counts(options, logits);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    EXPECT_NEAR(counts[i], kDraws * shares[i], 6 * std::sqrt(kDraws * shares[i] * (1 - shares[i]))) << i;
  }
}

TEST(Sampler, DrawsInProportion) {
  ExpectShares({}, Logits({0.1, 0.5, 0.05, 0.35}), {0.1, 0.5, 0.05, 0.35});
  ExpectShares({.seed = 2}, Logits({0.1, 0.5, 0.05, 0.35}).to(at::kFloat), {0.1, 0.5, 0.05, 0.35});
}

TEST(Sampler, TemperatureIsAPower) {
  // p^2: 1, 4, 9 of 14; sqrt(p) of 1, 4, 9: 1, 2, 3 of 6.
  ExpectShares({.temperature = 0.5}, Logits({1, 2, 3}), {1 / 14.0, 4 / 14.0, 9 / 14.0});
  ExpectShares({.temperature = 2}, Logits({1, 4, 9}), {1 / 6.0, 2 / 6.0, 3 / 6.0});
}

TEST(Sampler, TopKKeepsTheLikeliest) {
  ExpectShares({.top_k = 2}, Logits({1, 6, 1, 2}), {0, 0.75, 0, 0.25});
  ExpectShares({.top_k = 9}, Logits({1, 3}), {0.25, 0.75});
  // Of equal ones the first.
  ExpectShares({.top_k = 1}, Logits({1, 3, 3}), {0, 1, 0});
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  const at::Tensor logits = Logits({0.1, 0.5, 0.15, 0.25});
  ExpectShares({.top_p = 0.7}, logits, {0, 2 / 3.0, 0, 1 / 3.0});
  ExpectShares({.top_p = 0.76}, logits, {0, 0.5 / 0.9, 0.15 / 0.9, 0.25 / 0.9});
  ExpectShares({.top_p = 0}, logits, {0, 1, 0, 0});
  // After top_k: 0.5 of 0.75 alone is 0.67.
  ExpectShares({.top_k = 2, .top_p = 0.6}, logits, {0, 1, 0, 0});
}

TEST(Sampler, IsGreedyAtTemperatureZero) {
  Sampler sampler({.temperature = 0});
  EXPECT_EQ(*sampler.Next(at::tensor({1.0, 3.0, 2.0, 3.0})), 1);
}

TEST(Sampler, BearsLargeLogits) {
  Sampler sampler({});
  EXPECT_EQ(*sampler.Next(at::tensor({-3e4, 3e4, -std::numeric_limits<double>::infinity()}, at::kDouble)), 1);
}

TEST(Sampler, SeedsTellApart) {
  const at::Tensor logits = Logits(std::vector<double>(100, 0.01));
  const auto draw = [&](std::uint64_t seed) {
    Sampler sampler({.seed = seed});
    std::vector<std::int64_t> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(*sampler.Next(logits));
    return tokens;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(SamplingOptions, AreChecked) {
  EXPECT_EQ(Validate(SamplingOptions{.temperature = -1}).message(), "temperature is -1; expected 0 or more");
  EXPECT_EQ(Validate(SamplingOptions{.top_k = -2}).message(), "top_k is -2; expected 0 (all) or more");
  EXPECT_EQ(Validate(SamplingOptions{.top_p = 1.5}).message(), "top_p is 1.5; expected 0 to 1");
  EXPECT_TRUE(Validate(SamplingOptions{}).ok());
}

// Whatever the options: a token would be as good as any other.
TEST(Sampler, LogitsWithoutATokenAreAnError) {
  const auto message = [](const std::vector<double>& logits, const SamplingOptions& options) {
    Sampler sampler(options), untouched(options);
    const absl::StatusOr<std::int64_t> token = sampler.Next(at::tensor(logits, at::kDouble));
    EXPECT_EQ(token.status().code(), absl::StatusCode::kOutOfRange);
    const at::Tensor even = Logits(std::vector<double>(1000, 1e-3));
    EXPECT_EQ(sampler.Next(even).value(), untouched.Next(even).value()) << "a random number was used";
    return std::string(token.status().message());
  };
  for (const SamplingOptions& options :
       {SamplingOptions{}, {.temperature = 0}, {.temperature = 0.7, .top_k = 1, .top_p = 0.5}}) {
    EXPECT_THAT(message({0, std::nan(""), -kInfinity}, options), StartsWith("1 of 3 logits are NaN; "));
    EXPECT_THAT(message({0, kInfinity, kInfinity}, options), StartsWith("2 of 3 logits are inf; "));
    EXPECT_THAT(message({-kInfinity, -kInfinity}, options), StartsWith("2 of 2 logits are -inf; "));
  }
}

// Token by token through the whole model, the context cut in front.
constexpr std::int64_t kPositions = 8;
std::vector<std::int64_t> GreedyByWholePasses(models::ModuleModel& model, std::vector<std::int64_t> tokens,
                                              int count) {
  const auto positions = static_cast<std::size_t>(kPositions);
  std::vector<std::int64_t> made;
  for (int i = 0; i < count; ++i) {
    const std::size_t context = std::min(positions, tokens.size());
    const at::ArrayRef<std::int64_t> last(tokens.data() + tokens.size() - context, context);
    const at::Tensor logits = model.Forward(at::tensor(last, at::kLong).unsqueeze(0));
    made.push_back(logits[0][static_cast<std::int64_t>(context) - 1].argmax().item<std::int64_t>());
    tokens.push_back(made.back());
  }
  return made;
}

gpt::Gpt SmallGpt() {
  at::manual_seed(1);
  gpt::Gpt gpt({.vocab_size = 13, .block_size = kPositions, .n_layer = 2, .n_head = 2, .n_embd = 16},
               at::kDouble);
  gpt.SetTraining(false);
  return gpt;
}

// Texts of different lengths, of which the second stops early and two outgrow the model, are those of each alone.
void ExpectBatchesToBeTextsAlone(models::ModuleModel& model) {
  const std::vector<std::vector<std::int64_t>> prompts = {
      {3}, {7, 7, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8}, {5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6}, {9, 12}};
  const std::vector<int> counts = {10, 3, 10, 10, 10};
  std::vector<std::vector<std::int64_t>> heard(prompts.size());
  std::vector<Continuation> batch;
  for (std::size_t k = 0; k < prompts.size(); ++k) {
    batch.push_back({prompts[k], Sampler({.temperature = 0}), [&heard, &counts, k](std::int64_t token) {
                       heard[k].push_back(token);
                       return static_cast<int>(heard[k].size()) < counts[k];
                     }});
  }
  std::int64_t most_rows = 0;
  const models::BlockRunner run = [&](std::size_t block, const models::BlockState& input,
                                      const models::BlockContext& context) {
    most_rows = std::max(most_rows, input.hidden.size(0));
    return model.blocks()[block]->Forward(input, context);
  };
  ASSERT_TRUE(GenerateBatch({model, kPositions}, 10, absl::MakeSpan(batch), run).ok());
  EXPECT_EQ(most_rows, 3) << "the texts that fit go on together";
  for (std::size_t k = 0; k < prompts.size(); ++k) {
    EXPECT_EQ(heard[k], GreedyByWholePasses(model, prompts[k], counts[k])) << k;
    EXPECT_EQ(batch[k].tokens.size(), prompts[k].size() + heard[k].size());
  }
}

void ExpectTheModelAppliedAgainAndAgain(models::ModuleModel& model) {
  // Large weights: texts that do not repeat one token.
  for (const at::Tensor& parameter : model.parameters()) parameter.detach().mul_(20);
  ExpectBatchesToBeTextsAlone(model);
  for (const std::vector<std::int64_t>& prompt :
       {std::vector<std::int64_t>{3}, {1, 2, 3, 4, 5, 6, 7, 8}, {5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6}}) {
    Sampler greedy({.temperature = 0});
    std::vector<std::int64_t> heard;
    const auto made = Generate({model, kPositions}, prompt, 14, greedy,
                               [&](std::int64_t token) { heard.push_back(token); });
    EXPECT_EQ(made.value(), GreedyByWholePasses(model, prompt, 14));
    EXPECT_GT(std::set<std::int64_t>(made->begin(), made->end()).size(), 1u);
    EXPECT_EQ(heard, *made);
  }
  Sampler any({});
  EXPECT_TRUE(Generate({model, kPositions}, {1}, 0, any)->empty());
  int calls = 0;
  const models::BlockRunner run = [&](std::size_t block, const models::BlockState& input,
                                      const models::BlockContext& context) {
    ++calls;
    return model.blocks()[block]->Forward(input, context);
  };
  Sampler greedy({.temperature = 0});
  EXPECT_EQ(Generate({model, kPositions}, {3}, 5, greedy, {}, run).value(),
            GreedyByWholePasses(model, {3}, 5));
  EXPECT_EQ(calls, 10);
}

TEST(Generate, IsGptAppliedAgainAndAgain) {
  gpt::Gpt gpt = SmallGpt();
  ExpectTheModelAppliedAgainAndAgain(gpt);
}

TEST(Generate, IsLlamaAppliedAgainAndAgain) {
  at::manual_seed(1);
  llama::Llama llama({.vocab_size = 13,
                      .max_seq_len = kPositions,
                      .dim = 16,
                      .n_layers = 2,
                      .n_heads = 4,
                      .n_kv_heads = 2,
                      .hidden = 20},
                     at::kDouble);
  ExpectTheModelAppliedAgainAndAgain(llama);
}

TEST(Generate, SaysWhichTokenCouldNotBeDrawn) {
  gpt::Gpt gpt = SmallGpt();
  Sampler sampler({});
  int heard = 0;
  // As an optimizer's step between two tokens would.
  const auto spoil = [&](std::int64_t) {
    if (++heard == 2) gpt.parameters().back().detach().fill_(std::nan(""));
  };
  const auto made = Generate({gpt, kPositions}, {1}, 5, sampler, spoil);
  EXPECT_THAT(std::string(made.status().message()), StartsWith("token 3: 13 of 13 logits are NaN; "));
  EXPECT_EQ(heard, 2);
  std::vector<Continuation> batch = {{{1}, Sampler({})}};
  EXPECT_THAT(std::string(GenerateBatch({gpt, kPositions}, 1, absl::MakeSpan(batch)).message()),
              StartsWith("sample 1: token 1: 13 of 13 logits are NaN; "));
}

}  // namespace
}  // namespace plait::sampling
