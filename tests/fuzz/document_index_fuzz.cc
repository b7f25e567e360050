// Megatron-LM's index of documents: ignoring targets writes each of them at most once, and none outside.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/text/document_index.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using plait::data::IgnoredTargets;
  const auto index = plait::data::DocumentIndex::Parse(plait::fuzz::TextOf(data, size), "train.idx");
  if (!index.ok()) return 0;
  constexpr std::int64_t kTargets = 1000;
  for (const std::int64_t first :
       {std::int64_t{0}, index->tokens() / 2, std::max<std::int64_t>(index->tokens() - 1, 0)}) {
    std::vector<std::int64_t> documents(kTargets, 1), prompts(kTargets, 1);
    index->Ignore(IgnoredTargets::kDocuments, first, absl::MakeSpan(documents));
    index->Ignore(IgnoredTargets::kPrompts, first, absl::MakeSpan(prompts));
    for (std::int64_t i = 0; i < kTargets; ++i) {
      PLAIT_CHECK(documents[i] == 1 || (prompts[i] != 1 && first + i < index->tokens()));
    }
  }
  return 0;
}
