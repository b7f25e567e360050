// Suggestions for mistyped words.
#ifndef PLAIT_BASE_NEAREST_WORD_H_
#define PLAIT_BASE_NEAREST_WORD_H_

#include <string>
#include <vector>

namespace plait::base {

// Optimal string alignment distance: the least number of insertions, deletions, substitutions and swaps of neighbouring
// characters that turn `a` into `b`.
int EditDistance(const std::string& a, const std::string& b);

// The word with the least edit distance. If one of the two contains the other, and has at least three characters, they
// count as one edit apart. Ties go to the first. `words` must not be empty.
std::string NearestWord(const std::string& word, const std::vector<std::string>& words);

}  // namespace plait::base

#endif  // PLAIT_BASE_NEAREST_WORD_H_
