#include "tools/text_generation/samples.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "tools/text_generation/stop_text.h"

namespace plait::text_generation {
namespace {

using Write = std::function<void(absl::string_view text)>;

struct Prompt {
  std::string text;
  std::string name;  // for errors
  std::vector<std::int64_t> tokens = {};
};

absl::StatusOr<std::vector<Prompt>> PromptsOf(const Request& request) {
  if (request.prompts_file.empty()) return std::vector<Prompt>{{request.prompt, "--prompt"}};
  std::ifstream file(request.prompts_file);
  std::vector<Prompt> prompts;
  for (std::string line; std::getline(file, line);) {
    if (absl::EndsWith(line, "\r")) line.pop_back();
    prompts.push_back({line, absl::StrCat("--prompts-file: line ", prompts.size() + 1)});
  }
  if (!prompts.empty()) return prompts;
  return absl::InvalidArgumentError(
      absl::StrCat("--prompts-file=", request.prompts_file,
                   ": no such file, or an empty one; expected a prompt per line"));
}

// Encode would make ordinary pieces of such a token.
absl::Status CheckHasNone(const std::map<std::int32_t, std::string>& tokens, const std::string& prompt) {
  for (const auto& [id, text] : tokens) {
    if (!absl::StrContains(prompt, text)) continue;
    return absl::InvalidArgumentError(absl::StrCat("\"", absl::Utf8SafeCHexEscape(text.substr(0, 40)),
                                                   "\" is a token that was added beside the vocabulary (id ",
                                                   id, "), which is not supported in prompts; leave it out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Prompt>> EncodedPrompts(const Request& request, const SavedTextModel& saved) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<Prompt> prompts, PromptsOf(request));
  for (Prompt& prompt : prompts) {
    PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckHasNone(saved.added_tokens, prompt.text), prompt.name));
    const auto ids = saved.tokenizer->Encode(prompt.text);
    PLAIT_RETURN_IF_ERROR(base::Prefixed(ids.status(), prompt.name));
    if (ids->empty()) {
      return absl::InvalidArgumentError(absl::StrCat(prompt.name, ": expected at least one character"));
    }
    prompt.tokens.assign(ids->begin(), ids->end());
  }
  return prompts;
}

// Texts that grow side by side, written one after the other.
class TextsInOrder {
 public:
  explicit TextsInOrder(std::size_t texts, const Write& write) : texts_(texts), write_(write) {}

  void Add(std::size_t text, const std::string& more) {
    if (text == current_) return write_(more);
    texts_[text].waiting += more;
  }
  void End(std::size_t text) {
    Add(text, "\n---------------\n");
    texts_[text].ended = true;
    while (current_ < texts_.size() && texts_[current_].ended) {
      if (++current_ < texts_.size()) write_(texts_[current_].waiting);
    }
  }

 private:
  struct Text {
    std::string waiting;
    bool ended = false;
  };
  std::vector<Text> texts_;
  std::size_t current_ = 0;
  const Write& write_;
};

// Samples [first, first + count) of those of all prompts, --num-samples of each.
struct Samples {
  std::int64_t first, count;
};

std::uint64_t SeedOf(const Request& request, std::int64_t prompt, std::int64_t sample) {
  std::uint64_t seed = request.sampling.seed;
  if (prompt > 0) seed = base::DeriveSeed(seed, "prompt", static_cast<std::uint64_t>(prompt));
  return sample > 0 ? base::DeriveSeed(seed, "sample", static_cast<std::uint64_t>(sample)) : seed;
}

bool EndsText(const SavedTextModel& saved, std::int64_t token) {
  const std::vector<std::int64_t>& ends = saved.ends_of_text;
  return saved.tokenizer->end_of_text() == token || std::find(ends.begin(), ends.end(), token) != ends.end();
}

std::string TextOf(const SavedTextModel& saved, std::int64_t token) {
  const std::int32_t id[1] = {static_cast<std::int32_t>(token)};
  const auto added = saved.added_tokens.find(id[0]);
  return added == saved.added_tokens.end() ? saved.tokenizer->Decode(id).value_or("") : added->second;
}

// A sample's text as it grows.
class GrowingText {
 public:
  GrowingText(std::size_t number, const Request& request, const SavedTextModel& saved, TextsInOrder& out)
      : number_(number),
        text_(request.stops),
        saved_(saved),
        out_(out),
        ignores_ends_(request.ignore_end_of_text) {}

  // False if the text ends with this token.
  bool Add(std::int64_t token) {
    if (!ignores_ends_ && EndsText(saved_, token)) return End();
    out_.Add(number_, text_.Add(TextOf(saved_, token)));
    return text_.stopped() ? End() : true;
  }
  bool End() {
    if (std::exchange(ended_, true)) return false;
    if (!text_.stopped()) out_.Add(number_, text_.Rest());
    out_.End(number_);
    return false;
  }

 private:
  const std::size_t number_;
  StopText text_;
  const SavedTextModel& saved_;
  TextsInOrder& out_;
  const bool ignores_ends_;
  bool ended_ = false;
};

// The number of tokens that were drawn.
absl::StatusOr<std::int64_t> WriteBatch(const Request& request, const std::vector<Prompt>& prompts,
                                        Samples samples, SavedTextModel& saved, const Write& write) {
  TextsInOrder out(samples.count, write);
  std::vector<GrowingText> texts;
  std::vector<sampling::Continuation> batch;
  std::int64_t drawn = 0;
  for (std::int64_t k = 0; k < samples.count; ++k) {
    const std::int64_t sample = samples.first + k, prompt = sample / request.num_samples;
    sampling::SamplingOptions options = request.sampling;
    options.seed = SeedOf(request, prompt, sample % request.num_samples);
    out.Add(k, prompts[prompt].text);
    texts.emplace_back(k, request, saved, out);
    batch.push_back({prompts[prompt].tokens, sampling::Sampler(options), [&, k](std::int64_t token) {
                       ++drawn;
                       return texts[k].Add(token);
                     }});
  }
  const absl::Status made =
      sampling::GenerateBatch({*saved.model, saved.positions}, request.max_new_tokens, absl::MakeSpan(batch));
  if (!made.ok()) {
    write("\n");  // the message begins a line
    return samples.first == 0 ? made : base::Prefixed(made, absl::StrCat("behind sample ", samples.first));
  }
  for (GrowingText& text : texts) text.End();
  return drawn;
}

}  // namespace

absl::Status WriteSamples(const Request& request, SavedTextModel& saved, const Write& write) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Prompt> prompts, EncodedPrompts(request, saved));
  saved.model->SetTraining(false);
  const auto start = std::chrono::steady_clock::now();
  const auto all = static_cast<std::int64_t>(prompts.size()) * request.num_samples;
  std::int64_t tokens = 0;
  for (std::int64_t first = 0; first < all; first += request.batch_size) {
    const Samples samples = {first, std::min<std::int64_t>(request.batch_size, all - first)};
    PLAIT_ASSIGN_OR_RETURN(const std::int64_t drawn, WriteBatch(request, prompts, samples, saved, write));
    tokens += drawn;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  write(absl::StrFormat("%d tokens in %.6f s: %.1f tokens/s\n", tokens, seconds,
                        static_cast<double>(tokens) / seconds));
  return absl::OkStatus();
}

}  // namespace plait::text_generation
