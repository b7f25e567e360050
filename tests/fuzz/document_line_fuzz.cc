// A line of JSON as a document of a corpus.
#include <cstddef>
#include <cstdint>
#include <string>

#include "data/text/document_reader.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string line(plait::fuzz::TextOf(data, size));
  const auto document = plait::data::ParseDocument(line, {.prompt_key = "prompt"});
  PLAIT_CHECK(!document.ok() || document->text.size() + document->prompt.size() < size);
  return 0;
}
