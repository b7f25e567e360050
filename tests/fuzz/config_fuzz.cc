// config.json of every model: what is taken has sizes that its model takes.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "models/gpt/config.h"
#include "models/llama/config.h"
#include "models/model_sizes.h"
#include "models/vit/config.h"
#include "models/vit/preprocessor.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view text = plait::fuzz::TextOf(data, size);
  const plait::models::HeldNumbers nothing;
  if (const auto gpt = plait::gpt::OptionsFromConfig(text); gpt.ok()) {
    PLAIT_CHECK(gpt->n_layer > 0 && gpt->n_embd % gpt->n_head == 0);
    PLAIT_CHECK(!plait::models::CheckHeld(SizesOf(*gpt), nothing).ok());
  }
  if (const auto llama = plait::llama::ConfigFrom(text); llama.ok()) {
    PLAIT_CHECK(llama->options.n_layers > 0 && llama->options.n_heads % llama->options.n_kv_heads == 0);
    PLAIT_CHECK(!plait::models::CheckHeld(SizesOf(llama->options), nothing).ok());
  }
  if (const auto vit = plait::vit::OptionsFromConfig(text); vit.ok()) {
    PLAIT_CHECK(vit->depth > 0 && vit->image_size % vit->patch_size == 0);
    PLAIT_CHECK(!plait::models::CheckHeld(SizesOf(*vit), nothing).ok());
  }
  if (const auto preprocessor = plait::vit::PreprocessorFrom(text, 3); preprocessor.ok()) {
    PLAIT_CHECK(preprocessor->mean.size() == 3 && preprocessor->deviation.size() == 3);
    PLAIT_CHECK(preprocessor->centre_fraction > 0 && preprocessor->centre_fraction <= 1);
    PLAIT_CHECK_OK(plait::vit::PreprocessorFrom(PreprocessorText(*preprocessor, 224), 3).status());
  }
  return 0;
}
