// The readers that replay_test runs: a table for each program that links it (readers.cc).
#ifndef PLAIT_TESTS_FUZZ_READERS_H_
#define PLAIT_TESTS_FUZZ_READERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plait::fuzz {

struct Reader {
  std::string name;  // also of its folder under corpus/
  int (*take)(const std::uint8_t* data, std::size_t size);
  int mutations = 300;  // of each input
};

const std::vector<Reader>& Readers();

}  // namespace plait::fuzz

#endif  // PLAIT_TESTS_FUZZ_READERS_H_
