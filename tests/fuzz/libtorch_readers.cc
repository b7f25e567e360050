#include "tests/fuzz/readers.h"

extern "C" int Take_checkpoint(const std::uint8_t* data, std::size_t size);
extern "C" int Take_config(const std::uint8_t* data, std::size_t size);

namespace plait::fuzz {

const std::vector<Reader>& Readers() {
  static const auto& readers = *new std::vector<Reader>{
      {"checkpoint", Take_checkpoint},
      {"config", Take_config},
  };
  return readers;
}

}  // namespace plait::fuzz
