// The readers that a program replays inputs into: a table for each program, beside its list of dependencies.
#ifndef PLAIT_TESTS_FUZZ_READERS_H_
#define PLAIT_TESTS_FUZZ_READERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plait::fuzz {

struct Reader {
  std::string name;  // of its folder under corpus
  int (*take)(const std::uint8_t* data, std::size_t size);
  int mutations = 300;  // of each input
};

const std::vector<Reader>& Readers();

}  // namespace plait::fuzz

#endif  // PLAIT_TESTS_FUZZ_READERS_H_
