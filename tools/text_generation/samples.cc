#include "tools/text_generation/samples.h"

#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "base/status_macros.h"

namespace plait::text_generation {
namespace {

// Bytes at the end of `text` that are the beginning of a UTF-8 character.
std::size_t UnfinishedBytes(const std::string& text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;  // goes on with one
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

absl::Status WriteSamples(const Request& request, SavedTextModel& saved,
                          const std::function<void(absl::string_view text)>& write) {
  const absl::StatusOr<std::vector<std::int32_t>> encoded = saved.tokenizer->Encode(request.prompt);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(encoded.status(), "--prompt"));
  const std::vector<std::int32_t>& ids = *encoded;
  if (ids.empty()) return absl::InvalidArgumentError("--prompt: expected at least one character");
  const std::vector<std::int64_t> prompt(ids.begin(), ids.end());
  saved.model->SetTraining(false);
  const auto start = std::chrono::steady_clock::now();
  for (int sample = 0; sample < request.num_samples; ++sample) {
    sampling::SamplingOptions options = request.sampling;
    if (sample > 0) options.seed = base::DeriveSeed(request.sampling.seed, "sample", sample);
    sampling::Sampler sampler(options);
    std::string held;  // bytes of an incomplete character
    write(request.prompt);
    const auto write_token = [&](std::int64_t token) {
      const std::int32_t id[1] = {static_cast<std::int32_t>(token)};
      held += saved.tokenizer->Decode(id).value_or("");
      const std::size_t whole = held.size() - UnfinishedBytes(held);
      write(absl::string_view(held).substr(0, whole));
      held.erase(0, whole);
    };
    const auto tokens = sampling::Generate({*saved.model, saved.positions}, prompt, request.max_new_tokens,
                                           sampler, write_token);
    if (!tokens.ok()) {
      write("\n");  // the message begins a line
      return base::Prefixed(tokens.status(), absl::StrCat("sample ", sample + 1));
    }
    write(absl::StrCat(held, "\n---------------\n"));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::int64_t tokens = request.max_new_tokens * request.num_samples;
  write(absl::StrFormat("%d tokens in %.6f s: %.1f tokens/s\n", tokens, seconds,
                        static_cast<double>(tokens) / seconds));
  return absl::OkStatus();
}

}  // namespace plait::text_generation
