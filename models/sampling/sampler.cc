#include "models/sampling/sampler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "models/key_value_cache.h"

namespace plait::sampling {
namespace {

// Tokens and their probabilities, not normalized.
struct Candidates {
  std::vector<std::int64_t> tokens;
  std::vector<double> weights;
};

std::vector<double> Values(const at::Tensor& logits) {
  const at::Tensor values = logits.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* data = values.const_data_ptr<double>();
  return {data, data + values.numel()};
}

// All tokens: the `count` most likely first, in descending order, then the others in any order.
std::vector<std::int64_t> LikeliestFirst(const std::vector<double>& logits, std::int64_t count) {
  std::vector<std::int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::partial_sort(tokens.begin(), tokens.begin() + count, tokens.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
                    });
  return tokens;
}

// The tokens that top_k keeps, in descending order if top_k or top_p need it.
Candidates Chosen(const std::vector<double>& logits, const SamplingOptions& options) {
  const auto vocabulary = static_cast<std::int64_t>(logits.size());
  const std::int64_t count = options.top_k > 0 ? std::min(options.top_k, vocabulary) : vocabulary;
  Candidates chosen;
  chosen.tokens = LikeliestFirst(logits, count < vocabulary || options.top_p < 1 ? count : 0);
  chosen.tokens.resize(count);
  const double largest = *std::max_element(logits.begin(), logits.end());
  for (const std::int64_t token : chosen.tokens) {
    chosen.weights.push_back(std::exp((logits[token] - largest) / options.temperature));
  }
  return chosen;
}

// Keeps the first candidates whose total probability reaches `top_p`.
void CutNucleus(Candidates& candidates, double top_p) {
  const double all = std::accumulate(candidates.weights.begin(), candidates.weights.end(), 0.0);
  double sum = 0;
  std::size_t count = 0;
  while (count < candidates.weights.size() && (count == 0 || sum < top_p * all)) {
    sum += candidates.weights[count++];
  }
  candidates.tokens.resize(count);
  candidates.weights.resize(count);
}

// OutOfRange unless some token has a probability.
absl::Status CheckLogits(const std::vector<double>& logits) {
  const auto count = [&](const auto& is) { return std::count_if(logits.begin(), logits.end(), is); };
  const auto nan = count([](double value) { return std::isnan(value); });
  const auto infinite = count([](double value) { return value == HUGE_VAL; });
  const auto impossible = count([](double value) { return value == -HUGE_VAL; });
  const auto all = static_cast<std::ptrdiff_t>(logits.size());
  if (nan == 0 && infinite == 0 && impossible < all) return absl::OkStatus();
  const absl::string_view what = nan > 0 ? "NaN" : infinite > 0 ? "inf" : "-inf";
  return absl::OutOfRangeError(
      absl::StrCat(nan > 0        ? nan
                   : infinite > 0 ? infinite
                                  : impossible,
                   " of ", all, " logits are ", what,
                   "; the model's parameters are not finite, or it overflows in this dtype: take an earlier "
                   "checkpoint, or --dtype=float32"));
}

at::Tensor Row(absl::Span<const std::int64_t> tokens, at::Device device) {
  const at::ArrayRef<std::int64_t> values(tokens.data(), tokens.size());
  return at::tensor(values, at::kLong).unsqueeze(0).to(device);
}

// The last `positions` tokens.
absl::Span<const std::int64_t> Window(absl::Span<const std::int64_t> tokens, std::int64_t positions) {
  return tokens.last(std::min(tokens.size(), static_cast<std::size_t>(positions)));
}

at::Tensor LogitsOfNew(const LanguageModel& language, const at::Tensor& tokens, models::KeyValueCache& cache,
                       const models::BlockRunner& run) {
  const at::Tensor hidden =
      models::RunBlocks(language.model, {.inputs = tokens, .targets = {}}, run, {.cache = &cache}).hidden;
  return language.model.Output({.hidden = hidden.narrow(1, hidden.size(1) - 1, 1)});
}

at::Device DeviceOf(const LanguageModel& language) {
  return language.model.units().front().parameters.front().tensor.device();
}

// The logits of the last token of `context`, of which the cache holds the first ones.
at::Tensor LogitsBehind(const LanguageModel& language, absl::Span<const std::int64_t> context,
                        models::KeyValueCache& cache, const models::BlockRunner& run) {
  // A context of the same length as before has shifted by one position.
  if (static_cast<std::int64_t>(context.size()) == cache.length()) cache.Clear();
  const auto fresh = context.last(context.size() - static_cast<std::size_t>(cache.length()));
  return LogitsOfNew(language, Row(fresh, DeviceOf(language)), cache, run);
}

// The logits of the last token of each unfinished (`going`) sequence: in one pass for those with a single new token.
std::vector<at::Tensor> LogitsOfAll(const LanguageModel& language, absl::Span<const Continuation> batch,
                                    absl::Span<const std::size_t> going,
                                    std::vector<models::KeyValueCache>& caches,
                                    const models::BlockRunner& run) {
  std::vector<at::Tensor> logits(going.size());
  std::vector<std::size_t> together;
  for (std::size_t k = 0; k < going.size(); ++k) {
    const auto context = Window(batch[going[k]].tokens, language.positions);
    models::KeyValueCache& cache = caches[going[k]];
    if (cache.length() > 0 && cache.length() + 1 == static_cast<std::int64_t>(context.size())) {
      together.push_back(k);
    } else {
      logits[k] = LogitsBehind(language, context, cache, run).flatten();
    }
  }
  if (together.empty()) return logits;
  std::vector<std::int64_t> tokens;
  std::vector<models::KeyValueCache*> rows;
  for (const std::size_t k : together) {
    tokens.push_back(batch[going[k]].tokens.back());
    rows.push_back(&caches[going[k]]);
  }
  models::KeyValueCache all = models::KeyValueCache::OfRows(std::move(rows));
  const at::Tensor column = Row(tokens, DeviceOf(language)).transpose(0, 1).contiguous();
  const at::Tensor of_all = LogitsOfNew(language, column, all, run);
  for (std::size_t row = 0; row < together.size(); ++row) {
    logits[together[row]] = of_all.select(0, static_cast<std::int64_t>(row)).flatten();
  }
  return logits;
}

}  // namespace

absl::Status Validate(const SamplingOptions& options) {
  if (!(options.temperature >= 0 && std::isfinite(options.temperature))) {
    return absl::InvalidArgumentError(
        absl::StrCat("temperature is ", options.temperature, "; expected 0 or more"));
  }
  if (options.top_k < 0) {
    return absl::InvalidArgumentError(absl::StrCat("top_k is ", options.top_k, "; expected 0 (all) or more"));
  }
  if (!(options.top_p >= 0 && options.top_p <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("top_p is ", options.top_p, "; expected 0 to 1"));
  }
  return absl::OkStatus();
}

Sampler::Sampler(const SamplingOptions& options)
    : options_(options), random_(base::DeriveSeed(options.seed, "sampled tokens")) {
  PLAIT_CHECK_OK(Validate(options));
}

absl::StatusOr<std::int64_t> Sampler::Next(const at::Tensor& logits) {
  PLAIT_CHECK(logits.dim() == 1 && logits.numel() > 0) << "logits of shape " << logits.sizes();
  const std::vector<double> values = Values(logits);
  PLAIT_RETURN_IF_ERROR(CheckLogits(values));
  if (options_.temperature == 0) return std::max_element(values.begin(), values.end()) - values.begin();
  Candidates candidates = Chosen(values, options_);
  if (options_.top_p < 1) CutNucleus(candidates, options_.top_p);
  double left =
      random_.Uniform() * std::accumulate(candidates.weights.begin(), candidates.weights.end(), 0.0);
  // Rounding may leave a remainder after the last, which may be impossible.
  std::size_t last_possible = 0;
  for (std::size_t i = 0; i < candidates.weights.size(); ++i) {
    if (candidates.weights[i] == 0) continue;
    last_possible = i;
    if (left < candidates.weights[i]) break;
    left -= candidates.weights[i];
  }
  return candidates.tokens[last_possible];
}

absl::StatusOr<std::vector<std::int64_t>> Generate(const LogitsOfLast& logits, std::int64_t positions,
                                                   absl::Span<const std::int64_t> prompt, std::int64_t count,
                                                   Sampler& sampler,
                                                   const std::function<void(std::int64_t)>& on_token) {
  PLAIT_CHECK(!prompt.empty() && count >= 0) << prompt.size() << " tokens, " << count << " more";
  std::vector<std::int64_t> tokens(prompt.begin(), prompt.end());
  for (std::int64_t i = 0; i < count; ++i) {
    const at::Tensor last = logits(Window(tokens, positions));
    const absl::StatusOr<std::int64_t> token = sampler.Next(last.flatten());
    PLAIT_RETURN_IF_ERROR(base::Prefixed(token.status(), absl::StrCat("token ", i + 1)));
    tokens.push_back(*token);
    if (on_token) on_token(tokens.back());
  }
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
  return tokens;
}

absl::StatusOr<std::vector<std::int64_t>> Generate(const LanguageModel& language,
                                                   absl::Span<const std::int64_t> prompt, std::int64_t count,
                                                   Sampler& sampler,
                                                   const std::function<void(std::int64_t)>& on_token,
                                                   const models::BlockRunner& run) {
  const at::NoGradGuard no_grad;
  models::KeyValueCache cache;
  const auto logits = [&](absl::Span<const std::int64_t> context) {
    return LogitsBehind(language, context, cache, run);
  };
  return Generate(logits, language.positions, prompt, count, sampler, on_token);
}

absl::Status GenerateBatch(const LanguageModel& language, std::int64_t count, absl::Span<Continuation> batch,
                           const models::BlockRunner& run) {
  const at::NoGradGuard no_grad;
  std::vector<models::KeyValueCache> caches(batch.size());
  std::vector<std::size_t> going(batch.size());
  std::iota(going.begin(), going.end(), 0);
  for (std::int64_t i = 0; i < count && !going.empty(); ++i) {
    const std::vector<at::Tensor> logits = LogitsOfAll(language, batch, going, caches, run);
    std::vector<std::size_t> left;
    for (std::size_t k = 0; k < going.size(); ++k) {
      Continuation& text = batch[going[k]];
      const absl::StatusOr<std::int64_t> token = text.sampler.Next(logits[k]);
      PLAIT_RETURN_IF_ERROR(
          base::Prefixed(token.status(), absl::StrCat("sample ", going[k] + 1, ": token ", i + 1)));
      text.tokens.push_back(*token);
      if (!text.on_token || text.on_token(*token)) left.push_back(going[k]);
    }
    going = std::move(left);
  }
  return absl::OkStatus();
}

}  // namespace plait::sampling
