// tokenizer.json and tokenizer_config.json, which lie beside a vocabulary.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "data/text/tokenizer_settings.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plait::fuzz::MemoryFile file(plait::fuzz::TextOf(data, size));
  const absl::Status cuts = plait::data::CheckCutsAsGpt2(file.path());
  PLAIT_CHECK(cuts.message().find('\n') == absl::string_view::npos) << cuts;
  const absl::Status adds = plait::data::CheckAdds(file.path(), "add_prefix_space", false);
  PLAIT_CHECK(adds.message().find('\n') == absl::string_view::npos) << adds;
  const auto begins = plait::data::AddsBeginOfText(file.path());
  PLAIT_CHECK(begins.status().message().find('\n') == absl::string_view::npos) << begins.status();
  return 0;
}
