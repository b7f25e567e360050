// GPT-2's vocabulary and merges, with a NUL between them, and a text that a tokenizer of them must give back.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "data/text/byte_pair_tokenizer.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes = plait::fuzz::TextOf(data, size);
  const std::size_t end = std::min(bytes.find('\0'), size);
  const std::string vocabulary(bytes.substr(0, end)), merges(bytes.substr(std::min(end + 1, size)));
  const auto tokenizer =
      plait::data::BytePairTokenizer::Parse(vocabulary, merges, "vocab.json", "merges.txt");
  if (!tokenizer.ok()) return 0;
  const auto ids = tokenizer->Encode(" the\n and");
  PLAIT_CHECK(ids.ok() && tokenizer->Decode(*ids).value_or("") == " the\n and");
  return 0;
}
