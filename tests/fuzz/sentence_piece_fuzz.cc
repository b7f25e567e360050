// A model of SentencePiece, and a text that it cuts into ids of its own.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "data/text/sentence_piece_tokenizer.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto tokenizer = plait::data::SentencePieceTokenizer::Parse(
      std::string(plait::fuzz::TextOf(data, size)), "tokenizer.model");
  if (!tokenizer.ok()) return 0;
  const auto ids = tokenizer->Encode("the cat \xE2\x96\x81 and");
  PLAIT_CHECK_OK(ids.status());
  for (const std::int32_t id : *ids) PLAIT_CHECK(id >= 0 && id < tokenizer->vocabulary_size()) << id;
  tokenizer->Decode(*ids).status().IgnoreError();
  return 0;
}
