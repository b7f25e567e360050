#include "tools/gpt_training/settings.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::gpt_training {

using training::AtLeast;
using training::OnResume;

GptSettings::GptSettings() : TextSettings({.sequence = "block_size", .learning_rate = "learning_rate"}) {
  batch_size = 12;
  seed = 1337;
  trace = true;
}

void GptSettings::Bind(training::SettingsTable& table) {
  table.Group("Model");
  table.Add("preset", &preset,
            "sizes and their training by name: shakespeare-cpu, shakespeare, gpt2, gpt2-medium, gpt2-large, "
            "gpt2-xl, llama2B, llama7B; other flags change parts of it");
  table.Add("n_layer", &n_layer, "blocks of the model", OnResume::kSame);
  table.Add("n_head", &n_head, "attention heads per layer", OnResume::kSame);
  table.Add("n_embd", &n_embd, "width of the model, a multiple of --n-head", OnResume::kSame);
  table.Add(names.sequence, &sequence, "context length in tokens", OnResume::kSame);
  table.Add("dropout", &dropout, "dropout probability", OnResume::kSame);
  table.Add("bias", &bias, "biases in linear layers and norms", OnResume::kSame);
  BindText(table, "text file, or directory of .txt files, to train on (default: Debian's license texts)",
           "GPT-2");
}

void GptSettings::TakeSizes(const gpt::GptOptions& options) {
  n_layer = options.n_layer;
  n_head = options.n_head;
  n_embd = options.n_embd;
  bias = options.bias;
}

absl::Status GptSettings::Check(const std::vector<comm::MeshAxis>& axes) const {
  PLAIT_RETURN_IF_ERROR(AtLeast("n-layer", n_layer, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("n-head", n_head, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("n-embd", n_embd, 1));
  PLAIT_RETURN_IF_ERROR(training::Fraction("dropout", dropout));
  if (n_embd % n_head != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--n-embd=", n_embd, ": must be a multiple of --n-head=", n_head));
  }
  return CheckText(axes);
}

text_training::ModelOptions GptSettings::Options(std::int64_t vocabulary_size) const {
  return gpt::GptOptions{.vocab_size = vocabulary_size,
                         .block_size = sequence,
                         .n_layer = n_layer,
                         .n_head = n_head,
                         .n_embd = n_embd,
                         .dropout = dropout,
                         .bias = bias};
}

}  // namespace plait::gpt_training
