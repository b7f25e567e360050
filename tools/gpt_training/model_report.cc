#include "tools/gpt_training/model_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace plait::gpt_training {
namespace {

struct Tally {
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;

  std::string Words() const {
    return absl::StrCat(tensors, ", with ", base::FormatCount(parameters), " parameters");
  }
};

}  // namespace

std::vector<std::string> ParameterLines(const gpt::Gpt& model) {
  Tally decayed, others;
  for (const models::ParameterUnit& unit : model.units()) {
    for (const models::ParameterSpec& spec : unit.parameters) {
      Tally& tally = spec.decays ? decayed : others;
      ++tally.tensors;
      tally.parameters += spec.tensor.numel();
    }
  }
  const std::int64_t count = gpt::ParameterCount(model.options(), /*with_positions=*/false);
  return {absl::StrFormat("number of parameters: %.2fM", static_cast<double>(count) / 1e6),
          absl::StrCat("Model size: num_params=", count),
          absl::StrCat("num decayed parameter tensors: ", decayed.Words()),
          absl::StrCat("num non-decayed parameter tensors: ", others.Words())};
}

std::string OptimizerText(const parallel::ShardedOptimizerOptions& options) {
  std::string text = "AdamW (\n";
  for (const int group : {0, 1}) {
    absl::StrAppendFormat(
        &text,
        "Parameter Group %d\n    betas: (%g, %g)\n    eps: %g\n    fused: True\n    lr: %g\n"
        "    weight_decay: %g\n%s",
        group, options.beta1, options.beta2, options.epsilon, options.lr,
        group == 0 ? options.weight_decay : 0.0, group == 0 ? "\n" : ")");
  }
  return text;
}

std::int64_t ActivationBytesPerSample(const gpt::GptOptions& o, std::int64_t element_bytes,
                                      std::int64_t checkpointed_blocks) {
  const std::int64_t positions = o.block_size * o.n_embd;
  std::int64_t block = 16 * positions;
  if (o.dropout > 0) block += 3 * positions + 3 * o.n_head * o.block_size * o.block_size;
  const std::int64_t kept = o.n_layer - checkpointed_blocks + (checkpointed_blocks > 0 ? 1 : 0);
  const std::int64_t numbers = std::min(kept, o.n_layer) * block + checkpointed_blocks * positions;
  return numbers * element_bytes + EndBytesPerSample(o, element_bytes);
}

std::int64_t EndBytesPerSample(const gpt::GptOptions& o, std::int64_t element_bytes) {
  return (3 * o.block_size * o.n_embd + 2 * o.block_size * o.vocab_size) * element_bytes;
}

}  // namespace plait::gpt_training
