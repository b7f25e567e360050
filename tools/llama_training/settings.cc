#include "tools/llama_training/settings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::llama_training {

using training::OnResume;

LlamaSettings::LlamaSettings() : TextSettings({.sequence = "seq_length", .learning_rate = "lr"}) {
  sequence = 128;
  vocab_size = 32000;
  data = text_training::kRandomTokens;
  strategy = "fsdp";
  history_name = "train_dataset.h5";
  batch_size = 16;
  max_iters = 8;
  optimizer.learning_rate = 3e-3;
  optimizer.min_lr = 0;
  optimizer.lr_decay_iters = 0;
  optimizer.decay_lr = false;
  optimizer.weight_decay = 0.01;
  optimizer.beta2 = 0.999;
  optimizer.grad_clip = 0;
  eval_interval = 0;
  log_interval = 1;
}

void LlamaSettings::Bind(training::SettingsTable& table) {
  table.Group("Model");
  table.Add("n_layers", &n_layers, "blocks of the model", OnResume::kSame);
  table.Add("dim", &dim, "width of the model, a multiple of twice --n-heads", OnResume::kSame);
  table.Add("n_heads", &n_heads, "query heads per layer", OnResume::kSame);
  table.Add("n_kv_heads", &n_kv_heads, "key and value heads per layer, a divisor of --n-heads",
            OnResume::kSame);
  table.Add("hidden", &hidden, "width between w1 and w2", OnResume::kSame);
  table.Add("vocab_size", &vocab_size,
            "tokens of the model, at least those of the text's tokenizer; 0: as many as that has",
            OnResume::kSame);
  table.Add(sequence_flag, &sequence, "tokens of a sequence", OnResume::kSame);
  table.Add("rope_theta", &rope_theta, "base of the rotary positions", OnResume::kSame);
  BindText(table,
           "random: random tokens of --vocab-size, or a text file, directory of .txt files, or token files: "
           "a directory of "
           "prepare_text's or a FILE.bin; empty: Debian's license texts",
           "Llama");
}

void LlamaSettings::TakeSizes(const llama::LlamaOptions& options) {
  n_layers = options.n_layers;
  dim = options.dim;
  n_heads = options.n_heads;
  n_kv_heads = options.n_kv_heads;
  hidden = options.hidden;
  if (vocab_size > 0) vocab_size = options.vocab_size;  // 0: the model's
  rope_theta = options.rope_theta;
}

absl::Status LlamaSettings::Check(const std::vector<comm::MeshAxis>& axes) const {
  const std::pair<const char*, std::int64_t> sizes[] = {{"n-layers", n_layers},
                                                        {"dim", dim},
                                                        {"n-heads", n_heads},
                                                        {"n-kv-heads", n_kv_heads},
                                                        {"hidden", hidden}};
  for (const auto& [flag, size] : sizes) PLAIT_RETURN_IF_ERROR(training::AtLeast(flag, size, 1));
  PLAIT_RETURN_IF_ERROR(training::AtLeast("vocab-size", vocab_size, draws_random_tokens() ? 1 : 0));
  PLAIT_RETURN_IF_ERROR(training::Positive("rope-theta", rope_theta));
  if (dim % (2 * n_heads) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--dim=", dim, ": must be a multiple of 2 x --n-heads=",
                                                   n_heads, ", so that heads have an even width"));
  }
  if (n_heads % n_kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--n-kv-heads=", n_kv_heads, ": must divide --n-heads=", n_heads));
  }
  PLAIT_RETURN_IF_ERROR(CheckLayers(axes, "n-layers", n_layers));
  return CheckText(axes);
}

text_training::ModelOptions LlamaSettings::Options(std::int64_t vocabulary_size) const {
  return llama::LlamaOptions{.vocab_size = vocabulary_size,
                             .max_seq_len = sequence,
                             .dim = dim,
                             .n_layers = n_layers,
                             .n_heads = n_heads,
                             .n_kv_heads = n_kv_heads,
                             .hidden = hidden,
                             .rope_theta = rope_theta};
}

}  // namespace plait::llama_training
