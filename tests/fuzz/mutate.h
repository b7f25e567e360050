// Deterministic mutations: the n-th mutation of a file is the same in every run of a build.
#ifndef PLAIT_TESTS_FUZZ_MUTATE_H_
#define PLAIT_TESTS_FUZZ_MUTATE_H_

#include <cstdint>
#include <string>

namespace plait::fuzz {

// One to four of: a bit, a byte, or 4 or 8 bytes with an extreme number in either order; a cut; a piece doubled or taken
// out. Of an empty text: some bytes.
std::string Mutation(const std::string& bytes, std::uint64_t number);

}  // namespace plait::fuzz

#endif  // PLAIT_TESTS_FUZZ_MUTATE_H_
